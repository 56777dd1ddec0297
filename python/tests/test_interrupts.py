"""Signals that end long queries, as they end builds."""

import pathlib
import subprocess
import sys

import cairn
import pytest
from conftest import load

# Every row has the same key, so that a join has rows * rows pairs of 16 bytes.
ROWS = 12_000
PROGRAM = """
import resource, signal, sys, threading
import cairn

class Alarm(Exception): pass
def raised(*_): raise Alarm
index = cairn.open(sys.argv[1], calibration="none")
group = cairn.IndexGroup({"n": index})
if sys.argv[2] == "INT":
    expected = KeyboardInterrupt
    threading.Timer(0.15, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
else:
    expected = Alarm
    signal.signal(signal.SIGALRM, raised)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
try:
    cairn.join(index, index)
except expected:
    # Queries after an interrupt work as before.
    assert len(cairn.join(index, index, limit=7)) == 7
    assert cairn.count_join(index, index) == len(index) ** 2
    assert group.count("n = 1") == len(group.where("n = 1")) == len(index)
    assert group.aggregate({"rows": "count"}, group_by=["n"]).rows == len(index)
    assert index.group_by(1, {"rows": "count"}).values["rows"].to_list() == [len(index)]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("name", ["INT", "ALRM"])
def test_a_signal_ends_a_query(name: str, tmp_path: pathlib.Path) -> None:
    load(tmp_path / "db", {b"%d" % i: b"\1" for i in range(ROWS)})
    cairn.build(tmp_path / "db", {tmp_path / "n": "value[0:1]:u8"})
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, tmp_path / "n", name], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    # All pairs would take 2 GiB.
    assert int(ended.stdout) * 1024 < ROWS**2 * 16 * 3 // 4, ended.stdout


def test_queries_of_other_threads_and_of_forks(tmp_path: pathlib.Path) -> None:
    program = """
import os, sys, threading
import cairn
index = cairn.open(sys.argv[1], calibration="none")
group = cairn.IndexGroup({"n": index})
counts = []
def ask():
    for _ in range(200): counts.append(group.count("n = 1"))
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads: thread.start()
ask()
for thread in threads: thread.join()
assert set(counts) == {20} and len(counts) == 1000
child = os.fork()
if child == 0:
    # The child does not have the parent's threads that run queries.
    with cairn.open(sys.argv[1], calibration="none") as own:
        os._exit(0 if cairn.IndexGroup({"n": own}).count("n = 1") == 20 else 1)
assert os.waitpid(child, 0)[1] == 0
assert group.count() == 20
"""
    load(tmp_path / "db", {b"%d" % i: b"\1" for i in range(20)})
    cairn.build(tmp_path / "db", {tmp_path / "n": "value[0:1]:u8"})
    ended = subprocess.run([sys.executable, "-P", "-c", program, tmp_path / "n"], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
