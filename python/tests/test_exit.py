"""The end of the interpreter while daemon threads work in Cairn: the exit status is the program's."""

import os
import pathlib
import subprocess
import sys

import cairn
import pytest
from conftest import Table

BEGIN = f"""
import os, sys, threading, time
import cairn, numpy as np
directory, out = sys.argv[1:]
def daemon(work):
    def repeat():
        while True: work()
    threading.Thread(target=repeat, daemon=True).start()
"""
PROGRAMS = {
    "queries": """
index = cairn.open(directory + "/u32")
keys = np.arange(0, 100_000, 3, dtype=np.uint32)
group = cairn.IndexGroup({"n": index})
for work in (lambda: index.find(keys), lambda: index.scan(0, 1 << 30, primary_keys=True), lambda: group.count("n >= 1")): daemon(work)
time.sleep(0.1)
""",
    "a build": """
threading.Thread(target=lambda: cairn.build(directory + "/db", {out + f"/{i}": "value:bytes" for i in range(5)}), daemon=True).start()
time.sleep(0.005)
""",
    "builds with progress": """
daemon(lambda: cairn.build(directory + "/db", {out + "/again": "value:bytes"}, progress=lambda *_: sum(range(200_000))))
time.sleep(0.25)
""",
    "opening": """
daemon(lambda: cairn.open(directory + "/text", calibration="none").close())
daemon(lambda: cairn.Snapshot(directory + "/db").close())
time.sleep(0.1)
""",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_daemon_threads_do_not_change_the_exit_status(name: str, table: Table, tmp_path: pathlib.Path) -> None:
    environment = os.environ | {"PYTHONFAULTHANDLER": "1"}
    for status in (0, 3, 0):
        ended = subprocess.run(
            [sys.executable, "-P", "-c", f"{BEGIN}{PROGRAMS[name]}\nsys.exit({status})", table.indexes, tmp_path],
            capture_output=True, text=True, timeout=60, env=environment,
        )  # fmt: skip
        assert (ended.returncode, ended.stderr) == (status, "")
    # An index whose build was interrupted is complete or missing.
    for made in tmp_path.iterdir():
        with cairn.open(made) as index:
            assert len(index) == len(table.keys)
