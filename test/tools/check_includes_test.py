"""tools/check-includes: finds nothing in this tree, and finds each planted violation.

  check_includes_test.py ROOT
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())
RULES = """
files 3
lines 5
module include/cairn/*:
module low/first:
module low/second: low/first
module high/*: high/* low/second
library rocksdb/: high/*
"""
TREE = {
    "include/cairn/api.h": '#include <vector>\n#include "cairn/types.h"\n',
    "low/first/a.h": '#include "cairn/api.h"\n',
    "low/second/b.h": '#include "low/first/a.h"\n#include "low/second/c.h"\n',
    "low/second/c.h": "",
    "high/module/d.cc": '#include "low/second/b.h"\n#include "high/module/e.h"\n#include "rocksdb/db.h"\n',
    "high/module/e.h": "",
}


def run(root):
    done = subprocess.run([ROOT / "tools" / "check-includes", root], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


# The findings for the tree above with `changes` (FILE: contents).
def check(changes, rules=RULES):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**TREE, **changes, "tools/include-rules": rules}.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return run(root)


class CheckIncludesTest(unittest.TestCase):
    def found(self, message, changes, rules=RULES):
        status, output = check(changes, rules)
        self.assertEqual((status, output.splitlines()), (1, [message]))

    def test_this_tree(self):
        self.assertEqual(run(ROOT)[0], 0, run(ROOT)[1])

    def test_nothing_planted(self):
        self.assertEqual(check({})[0], 0, check({})[1])

    def test_includes(self):
        self.found("low/first/a.h:2: low/first may not include low/second (low/second/c.h)",
                   {"low/first/a.h": '\n#include "low/second/c.h"\n'})
        self.found("low/second/c.h:1: low/second may not include high/module (high/module/e.h)",
                   {"low/second/c.h": '#  include "high/module/e.h"\n'})
        self.found("high/module/e.h:1: high/module may not include low/first (low/first/a.h)",
                   {"high/module/e.h": '#include "low/first/a.h"\n'})
        self.found("include/cairn/api.h:1: include/cairn may not include low/first (low/first/a.h)",
                   {"include/cairn/api.h": '#include "low/first/a.h"\n'})
        self.found("high/module/e.h:1: there is no low/second/gone.h",
                   {"high/module/e.h": '#include "low/second/gone.h"\n'})

    def test_libraries(self):
        self.found("low/first/a.h:1: low/first may not include rocksdb/ (rocksdb/db.h)",
                   {"low/first/a.h": "#include <rocksdb/db.h>\n"})

    def test_folders(self):
        self.found("low/third: is no module of tools/include-rules", {"low/third/f.h": ""})
        self.found("low/first: 4 sources; at most 3", {f"low/first/{i}.cu": "" for i in range(3)})

    def test_files(self):
        self.found("low/first/a.h: 6 lines; at most 5", {"low/first/a.h": "\n" * 6})

    def test_small_headers(self):
        rules = RULES + "small 1\nalone 3\napart high/*\n"
        message = "low/second/c.h: 0 lines, of which only low/second/b.h makes use: make it a part of that"
        self.found(message, {}, rules)
        self.assertEqual(check({"high/module/d.cc": '#include "low/second/c.h"\n'}, rules)[0], 0)
        self.assertEqual(check({"low/second/c.h": "\n" * 2}, rules)[0], 0)
        self.assertEqual(check({"low/second/c.cc": '#include "low/second/c.h"\n' * 4}, rules)[0], 0)

    def test_rules(self):
        self.found("tools/include-rules:5: low/second is not named above low/first", {},
                   RULES.replace("low/first:", "low/first: low/second"))
        self.found("tools/include-rules:9: cannot be read: module low/first", {}, RULES + "module low/first\n")


if __name__ == "__main__":
    unittest.main()
