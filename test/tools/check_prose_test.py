"""tools/check-prose: each rule finds a planted sentence, and code, identifiers and good prose have no findings.

  check_prose_test.py ROOT
"""
import importlib.util
import pathlib
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader

ROOT = pathlib.Path(sys.argv.pop())
sys.dont_write_bytecode = True
loader = SourceFileLoader("check_prose", str(ROOT / "tools" / "check-prose"))
check_prose = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_prose", loader))
loader.exec_module(check_prose)


def found(name, text):
    """(line, rule) of each finding in a file of this name and text."""
    with tempfile.TemporaryDirectory() as root:
        check_prose.ROOT = pathlib.Path(root)
        (check_prose.ROOT / name).write_text(text)
        return [(line, rule) for line, rule, _, _ in check_prose.findings(name)]


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

    def test_messages(self):
        self.assertEqual(found("a.cc", 'Error("the file is mended by hand");\n'), [(1, "archaic")])

    def test_code_is_no_prose(self):
        self.assertEqual(found("a.cc", '#include "behind/x.h"\nint behind = Mend("anew");\n'), [])
        self.assertEqual(found("a.md", "Call `behind()`.\n\n```\nanew behind\n```\n"), [])

    def test_good_prose(self):
        self.assertEqual(found("a.cc", "// Returns the rows of each key, as many as the limit allows: as many as there are.\n"), [])


if __name__ == "__main__":
    unittest.main()
