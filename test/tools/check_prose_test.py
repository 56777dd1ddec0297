"""tools/check-prose: each rule finds a planted sentence, and code, identifiers and good prose have no findings.
The test of spelling is skipped if codespell is not installed.

  check_prose_test.py ROOT
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader

ROOT = pathlib.Path(sys.argv.pop())
sys.dont_write_bytecode = True
loader = SourceFileLoader("check_prose", str(ROOT / "tools" / "check-prose"))
check_prose = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_prose", loader))
loader.exec_module(check_prose)


def prose_of(name, text):
    """(line, sentence) of each sentence in a file of this name and text."""
    with tempfile.TemporaryDirectory() as root:
        check_prose.ROOT = pathlib.Path(root)
        (check_prose.ROOT / name).write_text(text)
        return list(check_prose.prose_of(name))


def found(name, text):
    """(line, rule) of each finding in a file of this name and text, except spelling."""
    return [(line, rule) for line, sentence in prose_of(name, text) for rule, _ in check_prose.broken_rules(sentence)]


def misspelled(name, text):
    """(line, word) of each misspelled word in a file of this name and text."""
    prose = prose_of(name, text)
    return [(prose[i][0], word) for i, word, _ in check_prose.misspellings([sentence for _, sentence in prose])]


class CheckProseTest(unittest.TestCase):
    def test_rules(self):
        for rule, sentence in {
            "topic first": "Of an index in shards, each shard is opened.",
            "what-clause": "What answers batches.",
            "behind": "The bytes behind the end.",
            "beside": "It writes a file beside the index.",
            "archaic": "It is built anew.",
            "stand": "The shards stand in one directory.",
            "of which": "A list, of which the first is empty.",
            "so many": "Stops after so many differences.",
            "but for": "All but for the last.",
            "pass over": "Nulls are passed over.",
            "else": "The CPU, else.",
            "is to be": "It is to be called once.",
            "not said": "The order is not said.",
            "long sentence": "word " * (check_prose.MOST_WORDS + 1) + ".",
        }.items():
            self.assertEqual(found("a.cc", f"int a;\n// {sentence}\n"), [(2, rule)], sentence)
            self.assertEqual(found("a.py", f'x = 1\n"""{sentence}"""\n'), [(2, rule)], sentence)
            self.assertEqual(found("a.md", f"# Title\n\n{sentence}\n"), [(3, rule)], sentence)

    def test_comments_of_several_lines_are_one_text(self):
        self.assertEqual(found("a.h", "// Returns the entries of\n// which there are two.\n"), [(1, "of which")])
        self.assertEqual(found("a.h", "// One sentence of\nint which;\n"), [])

    def test_tables_and_trailing_comments_are_separate_texts(self):
        words = "word " * 20
        self.assertEqual(found("a.h", f"int a;  // {words}\nint b;  // {words}\n"), [])
        self.assertEqual(found("a.h", f"// Sections:\n//   keys   {words}\n//   rows   {words}\n"), [])
        self.assertEqual(found("a.h", f"// - {words}\n//   {words}\n"), [(1, "long sentence")])
        self.assertEqual(found("a.h", "int a;  // made anew\n"), [(1, "archaic")])

    def test_messages(self):
        self.assertEqual(found("a.cc", 'Error("the file is mended by hand");\n'), [(1, "archaic")])

    def test_code_is_no_prose(self):
        self.assertEqual(found("a.cc", '#include "behind/x.h"\nint behind = Mend("anew");\n'), [])
        self.assertEqual(found("a.md", "Call `behind()`.\n\n```\nanew behind\n```\n"), [])

    @unittest.skipUnless(shutil.which("codespell"), "codespell is not installed")
    def test_spelling(self):
        self.assertEqual(misspelled("a.cc", "// The color.\n\n// The colour\n// of a recieved byte.\n"), [(3, "colour"), (3, "recieved")])
        self.assertEqual(misspelled("a.cc", 'Error("the serialised row: \\nfound");\n// A cancelled build.\n'), [(1, "serialised")])
        self.assertEqual(misspelled("a.py", "# The catalogue.\ncentre = 1\n"), [(1, "catalogue")])
        self.assertEqual(misspelled("a.md", "A neighbour.\n\nThe `neighbour` of kNeighbour, centre_of, colour2.\n"), [(1, "neighbour")])

    def test_codespell_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(shutil.which("git"), f"{folder}/git")
            result = subprocess.run([sys.executable, ROOT / "tools" / "check-prose"], env={"PATH": folder}, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("tools/packages checks", result.stderr)

    def test_only_docstrings_are_prose(self):
        self.assertEqual(found("a.py", 'PROGRAM = """\nWhat it does.\n"""\n\n\ndef f():\n    """What it does."""\n'), [(7, "what-clause")])
        self.assertEqual(found("a.py", '"""Title.\n\n    behind = 1\n\nname: text\n    behind.\n"""\n'), [(5, "behind")])

    def test_good_prose(self):
        self.assertEqual(found("a.cc", "// Returns the rows of each key, as many as the limit allows: as many rows as there are.\n"), [])


if __name__ == "__main__":
    unittest.main()
