"""Memory, threads, forks: which objects outlive which."""

import gc
import os
import resource
import subprocess
import sys
import threading
import weakref

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import Table

CALLS = int(os.environ.get("CAIRN_PYTHON_CALLS", "100000"))


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_calls_do_not_leak(table: Table) -> None:
    u64, i32, text, both = table.open("u64"), table.open("i32"), table.open("text"), table.open("u8_text")
    columns = cairn.from_columns(np.arange(100, dtype=np.uint64))
    keys = np.array(table.columns["u64"][:8], np.uint64)
    small, floats = keys.astype(np.int32), keys.astype(np.float64)
    words = pa.array(["Lisbon", "Oslo", "a"])
    out = np.empty(8, np.uint32)
    explain = cairn.Explain()

    def once() -> None:
        u64.find_first(keys)
        u64.find_first(keys, out=out, explain=explain)
        found = u64.find(keys, primary_keys=True)
        assert found.offsets is found.offsets and found[1] is not None
        pa.table(found)
        i32.contains(small)
        text.find(words)
        text.scan(prefix=["Lis"], limit=2, with_keys=True)
        both.count([(1, "a")], [(2,)])
        columns.find(keys)
        for index, bad in ((u64, small), (u64, floats), (u64, [1, "a"]), (text, [1]), (both, keys)):
            try:
                index.find(bad)
            except cairn.InvalidArgument:
                pass

    objects = (keys, small, floats, words, out, explain)
    for _ in range(200):
        once()
    gc.collect()
    counts, before = [sys.getrefcount(o) for o in objects], resident()
    for _ in range(CALLS // 14):
        once()
    gc.collect()
    assert [sys.getrefcount(o) for o in objects] == counts
    assert resident() - before < 8 << 20


def test_answers_outlive_their_index(table: Table) -> None:
    index = table.open("text")
    reference = weakref.ref(index) if hasattr(index, "__weakref__") else None
    found = index.find(["Oslo"], primary_keys=True)
    scanned = index.scan(limit=10, with_keys=True)
    rows, offsets, keys, cursors = found.row_ids, found.offsets, scanned.keys, scanned.cursors
    arrow, stream = pa.table(found), found.__arrow_c_stream__()
    primary = found.primary_keys
    expected = rows.tolist()
    index.close()
    del index, found, scanned
    gc.collect()
    assert reference is None or reference() is None
    assert rows.tolist() == expected and offsets.tolist() == [0, len(expected)]
    assert arrow["row_id"].to_pylist() == expected
    assert primary is not None and primary.to_list() == arrow["primary_key"].to_pylist()
    assert keys is not None and len(pa.array(keys)) == 10 and len(cursors) == 1
    del stream  # the capsule releases it, since no consumer took it


def test_arrow_may_take_columns_apart(table: Table) -> None:
    found = table.open("u8_text").scan(limit=50, with_keys=True, primary_keys=True)
    batch = pa.record_batch(found)
    kept = batch.column("key").field(1)
    expected = kept.to_pylist()
    del batch, found
    gc.collect()
    junk = [bytes(64) for _ in range(10_000)]
    assert kept.to_pylist() == expected and len(junk) == 10_000


def test_an_array_is_held_while_it_is_searched(table: Table) -> None:
    index = table.open("u64")
    keys = bytearray(np.array(table.columns["u64"] * 300, np.uint64).tobytes())
    view = memoryview(keys).cast("Q")
    refused = []

    def shrink() -> None:
        for _ in range(200):
            try:
                keys.extend(b"x")
                del keys[-1:]
            except BufferError:
                refused.append(1)

    # Only the memoryview also holds it, so the call must hold it when that is gone.
    thread = threading.Thread(target=shrink)
    thread.start()
    assert index.contains(view).all()
    thread.join()
    view.release()
    keys.extend(b"free again")
    assert len(refused) == 200


def test_text_that_is_no_utf8(tmp_path: object) -> None:
    index = cairn.from_columns([b"\xff\xfe", b"ok"], types=["text"])
    keys = index.scan(with_keys=True).keys
    assert keys is not None and keys.type == "large_string"
    with pytest.raises(cairn.InvalidArgument, match="value 1 .* not UTF-8; as_bytes"):
        pa.array(keys)
    with pytest.raises(cairn.InvalidArgument, match="as_bytes"):
        keys.to_list()
    assert keys.as_bytes().to_list() == [b"ok", b"\xff\xfe"] == pa.array(keys.as_bytes()).to_pylist()
    # Valid as a whole, but cut within a character.
    cut = cairn.from_columns(["é".encode()[:1], "é".encode()[1:]], types=["text"], row_ids=[1, 0]).scan(with_keys=True).keys
    with pytest.raises(cairn.InvalidArgument, match="not UTF-8"):
        pa.array(cut)
    with pytest.raises(cairn.KeyTypeError, match="large_string"):
        np.asarray(keys)


def test_threads_share_an_index(table: Table) -> None:
    index = table.open("u64")
    keys = np.array(table.columns["u64"], np.uint64)
    expected = index.find_first(keys)
    failures: list[BaseException] = []

    def query() -> None:
        try:
            for _ in range(50):
                assert (index.find_first(keys) == expected).all()
                assert index.contains(keys).all()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=query) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_closing_while_others_query(table: Table) -> None:
    for _ in range(20):
        index = table.open("u64", calibration="none", verify="metadata")
        keys = np.array(table.columns["u64"] * 10, np.uint64)
        answered, closed = [], []

        def query(index: cairn.Index = index, keys: np.ndarray = keys, answered: list[int] = answered, closed: list[int] = closed) -> None:
            try:
                while True:
                    assert index.contains(keys).all()
                    answered.append(1)
            except cairn.Closed:
                closed.append(1)

        threads = [threading.Thread(target=query) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(answered) < 4:
            pass
        index.close()
        for thread in threads:
            thread.join()
        assert len(closed) == 4 and index.closed
    assert "closed" in repr(index)
    for use in (lambda: len(index), lambda: index.sequence, lambda: index.stats(), lambda: index.find([1]), index.verify, index.compact):
        with pytest.raises(cairn.Closed, match="is closed"):
            use()
    with pytest.raises(cairn.Closed), index:
        index.find([1])


PROGRAM = """
import os, sys, threading, traceback
import cairn, numpy as np
directory, database = sys.argv[1:]
index = cairn.open(directory)
keys = np.arange(200_000, dtype=np.uint64)
columns = cairn.from_columns(keys)
index.find(keys)

def run_child():
    global index, columns
    for use in (lambda: index.find(keys), lambda: len(index), lambda: columns.find(keys), lambda: index.catch_up(database)):
        try:
            use()
            os._exit(1)
        except cairn.Forked as error:
            assert "before this process was forked" in str(error)
    index.close()
    del index, columns
    with cairn.open(directory) as again:
        again.find(keys)
        assert len(again) > 0
    assert len(cairn.from_columns(keys)) == len(keys)
    os._exit(0)

def search():  # runs during the fork, so that the children lack threads that are working
    while not done.is_set():
        index.find(keys)

done = threading.Event()
thread = threading.Thread(target=search)
thread.start()
statuses = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        try:
            run_child()
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    statuses.append(os.waitpid(child, 0)[1])
done.set()
thread.join()
assert len(index.find(keys)) == len(keys)
assert statuses == [0] * 8, statuses
"""


def test_a_forked_child_opens_its_own(table: Table) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(table.indexes / "u64"), str(table.directory)], timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
