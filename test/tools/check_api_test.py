"""tools/check-api: finds a planted change of the C ABI and one of the C++ API; skipped without its tools.

  check_api_test.py ROOT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())


def check(*changes):
    """The exit status and output for a copy of the headers with these (header, old text, new text)."""
    with tempfile.TemporaryDirectory() as copy:
        for path in ("include", "docs/Doxyfile", "tools/check-api", "tools/doxygen-comments", "tools/api"):
            target = pathlib.Path(copy, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / path).is_dir() else shutil.copy)(ROOT / path, target)
        for header, old, new in changes:
            file = pathlib.Path(copy, "include/cairn", header)
            text = file.read_text()
            assert text.count(old) == 1, (header, old)
            file.write_text(text.replace(old, new))
        result = subprocess.run([f"{copy}/tools/check-api"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return result.returncode, result.stdout


class CheckApiTest(unittest.TestCase):
    def test_no_change(self):
        status, output = check()
        self.assertEqual(status, 0, output)

    def test_changes(self):
        status, output = check(
            ("c.h", "  size_t structures_count;\n", "  size_t structures_count;\n  int32_t planted;\n"),
            ("aggregate.h", "  kCount,", "  kPlanted,\n  kCount,"))
        self.assertEqual(status, 1)
        self.assertIn("'int32_t planted'", output)  # abidiff
        self.assertIn("+  int32_t cairn_open_options::planted", output)
        self.assertIn("{ kPlanted, kCount,", output)
        self.assertIn("--record", output)


if not all(map(shutil.which, ("gcc", "doxygen", "abidw", "abidiff"))):
    print("skipped: needs gcc, doxygen, abidw and abidiff")
    sys.exit(77)
unittest.main()
