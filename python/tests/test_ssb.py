"""The Star Schema Benchmark's queries on small data: the program that measures them compares its results with
SQLite's.
"""

import pathlib
import shutil
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parents[2] / "tools" / "bench" / "ssb"


def test_all_queries_are_answered_as_by_sqlite(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow")
    if shutil.which("ldb") is None or not PROGRAM.exists():
        pytest.skip("needs ldb, of Debian's rocksdb-tools, and the sources' tools")
    command = [sys.executable, str(PROGRAM), str(tmp_path / "ssb"), "--scale=0.005", "--repetitions=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.endswith("x |")]
    assert len(rows) == 13
