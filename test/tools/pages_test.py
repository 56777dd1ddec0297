"""docs/cli.md has what `cairn --help` has, docs/api.md what the public headers have, and docs/operations.md names messages and
metrics that exist. Members of public classes that any page names exist.

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
                    self.assertRegex(text, rf"(class|struct|using|enum class) {name}\b(?! *;)|\b{name}\(|typedef struct {name} {name};")

    def test_each_type_and_function_has_a_comment(self):
        # A declaration that follows another one without an empty line shares its comment.
        a_type = r"(?:  )?(?:typedef )?(?:class|struct|enum class|enum) [^;]*\{\s*(?://.*)?$"
        a_function = r"(?!template|class|struct|enum|namespace|using|#|//|\}|\{|static|extern|typedef)[\w:<>]+[^;{]* \*?\w+\("
        declaration = re.compile(f"{a_type}|{a_function}")
        for path in sorted(HEADERS.rglob("*.h")):
            if "internal" in path.parts or path.name in ("arrow.h", "cairn.h"):
                continue
            private = False
            lines = path.read_text().split("\n")
            for number, line in enumerate(lines):
                private = line.startswith(" private:") or (private and not re.match(r"class|struct| public:", line))
                if private or not declaration.match(line):
                    continue
                above = number - 1
                while re.match(r"\s*template", lines[above]):
                    above -= 1
                with self.subTest(header=path.name, line=number + 1, declaration=line):
                    self.assertFalse(lines[above].strip() == "" or re.search(r"(public:|(?<!//)\{)$", lines[above]))

    def test_each_member_that_a_page_names_is_in_the_header_of_its_class(self):
        headers = [path.read_text() for path in HEADERS.rglob("*.h")]
        inherited = (HEADERS / "batch_index.h").read_text()  # methods of SecondaryIndex
        checked = 0
        for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
            text = page.read_text()
            if page.name in ("CHANGELOG.md", "upgrading.md"):  # these name former members
                continue
            for name, member in re.findall(r"\b([A-Z]\w+)::(\w+)", text):
                declaration = re.compile(rf"^\s*(class|struct|enum class) {name}\b[^;]*$", re.MULTILINE)
                declaring = [header for header in headers if declaration.search(header)]
                checked += len(declaring)
                with self.subTest(page=page.name, name=f"{name}::{member}"):
                    self.assertTrue(not declaring or any(re.search(rf"\b{member}\b", header) for header in [*declaring, inherited]))
        self.assertGreater(checked, 50)

    def test_the_header_of_the_whole_api_includes_each(self):
        text = (HEADERS / "cairn.h").read_text()
        included = set(re.findall(r'#include "cairn/([^"]+)"', text))
        indirectly = {"types.h"}
        expected = {name for name in self.names if not name.startswith("c/") and name != "c.h"} - indirectly
        self.assertEqual(expected, included - indirectly)


class Lists(unittest.TestCase):
    def test_each_page_is_in_the_lists_for_readers_and_programs(self):
        pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")} - {"docs/README.md"}
        self.assertEqual(pages, set(re.findall(r"\((docs/[\w-]+\.md)\)", (ROOT / "llms.txt").read_text())))
        self.assertEqual({page.removeprefix("docs/") for page in pages},
                         set(re.findall(r"\(([\w-]+\.md)\)", (ROOT / "docs" / "README.md").read_text())))

    @unittest.skipUnless((ROOT / ".git").exists(), "not a checkout")
    def test_each_page_is_in_the_navigation_of_the_site(self):
        listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
        navigation = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
        self.assertEqual(set(listed) - {"AGENTS.md"}, set(navigation))

    def test_agents_md_is_short(self):
        self.assertLessEqual(len((ROOT / "AGENTS.md").read_text().splitlines()), 60)


class Operations(unittest.TestCase):
    def setUp(self):
        self.page = (ROOT / "docs" / "operations.md").read_text()
        sources = [path.read_text() for folder in ("engine", "index") for path in (ROOT / folder).rglob("*.cc")]
        # String literals that are continued on the next line are one.
        self.sources = re.sub(r'"\s*\n\s*"', "", "\n".join(sources))

    def test_messages_with_actions_exist(self):
        table = self.page.split("## Errors and actions")[1]
        cells = re.findall(r"^\| [^|]* \| ([^|]*) \|", table, re.MULTILINE)
        phrases = [part.strip() for cell in cells for phrase in re.findall(r"`([^`]+)`", cell) for part in phrase.split("…")]
        self.assertGreater(len(phrases), 15)
        for phrase in filter(None, phrases):
            with self.subTest(phrase=phrase):
                self.assertIn(phrase.strip("':, "), self.sources)

    def test_metrics_are_those_of_the_sources(self):
        exported = set(re.findall(r'"(cairn_[a-z_]+)', self.sources))
        named = {name for name in re.findall(r"`(cairn_[a-z_]+)`", self.page)}
        self.assertEqual(exported, named)


if __name__ == "__main__":
    unittest.main()
