"""docs/cli.md has what `cairn --help` has, and docs/api.md what the public headers have.

  pages_test.py CAIRN ROOT
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop())
CAIRN = sys.argv.pop()
HEADERS = ROOT / "include" / "cairn"


def run(*arguments):
    return subprocess.run([CAIRN, *arguments], check=True, capture_output=True, text=True).stdout


def options_of_help(text):
    """The names of options at the beginning of a help text's lines, except that of help itself."""
    names = set()
    for line in re.findall(r"^  (-\S+)", text, re.MULTILINE):
        names.update(name for name in line.split(",") if name.startswith("--"))
    return names - {"--help"}


def sections(page):
    """The text below each heading of the second level, by the heading without code marks."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return {heading.strip("` "): text for heading, text in zip(parts[1::2], parts[2::2])}


def options_of_page(text):
    """The names of options in the first cells of a section's tables."""
    cells = re.findall(r"^\| ((?:\\\||[^|])*) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(--[a-z-]+)", cell)}


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.sections = sections((ROOT / "docs" / "cli.md").read_text())

    def test_each_command_has_a_section_with_its_options(self):
        commands = re.findall(r"^  ([a-z-]+)  ", run("--help").split("Subcommands:")[1].split("\n\n")[0], re.MULTILINE)
        self.assertGreater(len(commands), 10)
        self.assertEqual([f"cairn {command}" for command in commands], [name for name in self.sections if name.startswith("cairn ")])
        # Options that several commands have are in sections that the commands' sections link to.
        shared = {f"(#{name.lower().replace(' ', '-')})": options_of_page(text)
                  for name, text in self.sections.items() if name.startswith("Options of ")}
        for command in commands:
            text = self.sections[f"cairn {command}"]
            shown = options_of_page(text).union(*(options for link, options in shared.items() if link in text))
            with self.subTest(command=command):
                self.assertEqual(options_of_help(run(command, "--help")), shown)

    def test_examples_name_existing_commands_and_options(self):
        for line in re.findall(r"^(?:\$ )?(cairn [a-z].*)$", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE):
            command = line.split()[1]
            help_text = options_of_help(run(command, "--help"))
            with self.subTest(line=line):
                self.assertLessEqual(set(re.findall(r" (--[a-z-]+)", line)), help_text)


class Headers(unittest.TestCase):
    def setUp(self):
        rows = re.findall(r"^\| \[`([^`]+)`\]\([^)]*\) \| ([^|]+) \|", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
        self.names = {header: re.findall(r"`([^`]+)`", names) for header, names in rows}

    def test_each_public_header_has_a_row(self):
        public = {str(path.relative_to(HEADERS)) for path in HEADERS.rglob("*.h")}
        public = {name for name in public if not name.startswith("internal/") and name != "cairn.h"}
        self.assertEqual(public, set(self.names))

    def test_each_name_is_declared_in_its_header(self):
        for header, names in self.names.items():
            text = (HEADERS / header).read_text()
            self.assertTrue(names, header)
            for name in names:
                with self.subTest(header=header, name=name):
                    self.assertRegex(text, rf"[\w>*&] \**{name}\b")

    def test_the_header_of_the_whole_api_includes_each(self):
        text = (HEADERS / "cairn.h").read_text()
        included = set(re.findall(r'#include "cairn/([^"]+)"', text))
        indirectly = {"types.h"}
        expected = {name for name in self.names if not name.startswith("c/") and name != "c.h"} - indirectly
        self.assertEqual(expected, included - indirectly)


if __name__ == "__main__":
    unittest.main()
