#!/usr/bin/env python3
"""tools/check-locks rejects a guarded member that is used without its lock, and accepts one that is used with it."""
import os
import shutil
import subprocess
import sys
import tempfile

GOOD = """
#include "index/machine/mutex.h"
class Counter {
 public:
  void Add() {
    const cairn::MutexLock lock(&mutex_);
    AddLocked();
  }

 private:
  void AddLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { ++count_; }
  cairn::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
void Use(Counter* counter) { counter->Add(); }
"""
LOCK = '    const cairn::MutexLock lock(&mutex_);\n'
VIOLATIONS = {
    'a call without the lock': GOOD.replace(LOCK, ''),
    'a member without the lock': GOOD.replace('AddLocked();\n  }', '++count_;\n  }').replace(LOCK, ''),
    'a lock taken twice': GOOD.replace(LOCK, LOCK + LOCK.replace('lock(', 'again(')),
    'a member after Unlock': GOOD.replace(LOCK, LOCK.replace('const ', '') + '    lock.Unlock();\n'),
}


def main():
    if shutil.which('clang++') is None:
        return 77
    root = sys.argv[1]
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'planted.cc')

        def check(source):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(source)
            return subprocess.run([os.path.join(root, 'tools/check-locks'), path], capture_output=True, text=True)

        good = check(GOOD)
        if good.returncode != 0:
            print('refused what is right:', good.stderr)
            failures += 1
        for name, source in VIOLATIONS.items():
            found = check(source)
            if found.returncode == 0 or 'Wthread-safety' not in found.stderr:
                print('did not refuse:', name, found.stderr)
                failures += 1
    return 1 if failures else 0


sys.exit(main())
