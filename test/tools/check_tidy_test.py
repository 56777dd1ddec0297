#!/usr/bin/env python3
"""tools/check-tidy rejects code that violates .clang-tidy, and accepts correct code."""
import os
import shutil
import subprocess
import sys
import tempfile

GOOD = """
#include <string>
#include <utility>

namespace cairn {

class Name {
 public:
  explicit Name(std::string text) : text_(std::move(text)) {}
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};

bool IsEmpty(std::string text) {
  const Name name(std::move(text));
  return name.empty();
}

}  // namespace cairn
"""
VIOLATIONS = {
    'bugprone-use-after-move': GOOD.replace('return name.empty();', 'return name.empty() || text.empty();'),
    'google-explicit-constructor': GOOD.replace('explicit ', ''),
    'readability-identifier-naming': GOOD.replace('text_', 'text').replace('text(std::move(text))', 'text(text)'),
}


def main():
    if shutil.which('clang-tidy') is None:
        return 77
    root = sys.argv[1]
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(os.path.join(root, '.clang-tidy'), directory)
        path = os.path.join(directory, 'planted.cc')

        def check(source):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(source)
            return subprocess.run([os.path.join(root, 'tools/check-tidy'), path], capture_output=True, text=True)

        good = check(GOOD)
        if good.returncode != 0:
            print('refused what is right:', good.stdout, good.stderr)
            failures += 1
        for name, source in VIOLATIONS.items():
            found = check(source)
            if found.returncode == 0 or name not in found.stdout:
                print('did not refuse:', name, found.stdout, found.stderr)
                failures += 1
    return 1 if failures else 0


sys.exit(main())
