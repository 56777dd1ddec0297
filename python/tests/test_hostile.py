"""Arguments that their own Python code, or their owner, changes during a call."""

import gc
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import cairn
import cairn.plot
import numpy as np
import pyarrow as pa
import pytest
from conftest import Table, load


def both(text_first: bool = False) -> cairn.ColumnIndex:
    columns = (np.arange(3, dtype=np.uint8), pa.array([letter * 60 for letter in "xyz"]))
    return cairn.from_columns(columns[::-1] if text_first else columns)


def junk() -> list[str]:
    """Fills memory that has just been freed."""
    return [f"{i:03}" + "Q" * 57 for i in range(200)]


def test_a_stream_is_read_once() -> None:
    def reader(*names: str) -> Any:
        batch = pa.record_batch({"a": pa.array([7, 9], pa.uint64()), "b": pa.array(["x", "y"])}).select(names)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])

    index = cairn.from_arrow(reader("a"))
    assert (len(index), index.key_types) == (4, ["u64"])
    assert index.find(reader("a")).offsets.tolist() == [0, 2, 4, 6, 8]
    index = cairn.from_arrow(reader("a", "b"))
    assert (len(index), index.key_types) == (4, ["u64", "text"])
    assert index.contains(reader("a", "b")).all()
    assert len(cairn.from_columns((reader("a"), reader("b")))) == 4
    assert len(cairn.from_columns(reader("b"), types=["text"])) == 4


def test_text_of_a_key_that_does_not_keep_it() -> None:
    class Key(tuple):  # type: ignore[type-arg]
        def __getitem__(self, i: Any) -> Any:
            return 1 if i == 0 else "".join(["y"] * 60)

    # The contents of a tuple count, not the results of its class's methods.
    assert both().find([Key((2, "z" * 60))])[0].tolist() == [2]
    assert both().count(leading=[Key((2, "z" * 60))]).tolist() == [1]


def test_a_key_that_changes_while_it_is_read() -> None:
    class Number:
        ndim = 0

        def __init__(self, key: list[Any]) -> None:
            self.key = key

        def item(self) -> int:
            self.key[0] = None
            gc.collect()
            self.kept = junk()
            return 2

    def key() -> list[Any]:
        made: list[Any] = ["".join(["z"] * 60), None]
        made[1] = Number(made)
        return made

    index = both(text_first=True)
    for _ in range(20):
        assert index.find([key()])[0].tolist() == [2]
        assert index.count([key()], [("zz",)]).tolist() == [0]
        assert index.count(leading=[key()]).tolist() == [1]


def test_an_arrow_capsule_belongs_to_whoever_reads_it() -> None:
    class Kept:
        def __init__(self) -> None:
            self.capsules = pa.array(["x" * 60, "y" * 60]).__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return self.capsules

    taken = []

    class Thief:
        def __init__(self, victim: Kept) -> None:
            self.victim = victim

        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            try:
                taken.append(pa.Array._import_from_c_capsule(*self.victim.capsules))
            except ValueError:
                pass
            return pa.array([0, 1], pa.uint8()).__arrow_c_array__()

    kept = Kept()
    assert both(text_first=True).find((kept, Thief(kept))).row_ids.tolist() == [0, 1]
    assert taken == []
    with pytest.raises(cairn.InvalidArgument, match="released before it was read"):
        both(text_first=True).find((kept, Thief(kept)))


@pytest.mark.parametrize(
    ("capsules", "message"),
    [
        (None, "no pair of capsules"),
        ([], "no pair of capsules"),
        ((1, 2), "expected an Arrow capsule 'arrow_schema', found int"),
        (pa.array(["a"]).__arrow_c_array__()[::-1], "expected an Arrow capsule 'arrow_schema'"),
    ],
)
def test_what_is_no_arrow_capsule(capsules: Any, message: str) -> None:
    class Array:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return capsules

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            return capsules

    index = cairn.from_columns(["a"])
    with pytest.raises(cairn.InvalidArgument, match=message):
        index.find(Array())
    with pytest.raises(cairn.InvalidArgument, match="expected an Arrow capsule 'arrow_array_stream'"):
        index.find(Stream())


def test_a_stream_that_closes_the_index_or_fails() -> None:
    schema = pa.schema([("a", pa.string())])

    def batches(index: cairn.ColumnIndex, fail: bool) -> Iterator[Any]:
        index.close()
        gc.collect()
        yield pa.record_batch({"a": pa.array(["b", "a"])})
        if fail:
            raise RuntimeError("half way")

    index = cairn.from_columns(["a", "b"])
    assert index.find(pa.RecordBatchReader.from_batches(schema, batches(index, False))).row_ids.tolist() == [1, 0]
    with pytest.raises(cairn.Closed):
        index.find(["a"])
    index = cairn.from_columns(["a", "b"])
    with pytest.raises(cairn.InvalidArgument, match="half way"):
        index.find(pa.RecordBatchReader.from_batches(schema, batches(index, True)))


def test_out_is_apart_from_what_is_read() -> None:
    keys = np.arange(4, dtype=np.uint64)
    index = cairn.from_columns(keys)
    for arguments in ((keys, keys + 1), (keys - 1, keys), (keys,)):
        with pytest.raises(cairn.OutputTypeError, match="apart from the keys'"):
            index.count(*arguments, out=keys)
    with pytest.raises(cairn.OutputTypeError, match="apart from the keys'"):
        index.count(keys=keys, out=keys)
    assert index.count(keys, out=np.empty(4, np.uint64)).tolist() == [4, 3, 2, 1]
    heap = np.frombuffer(b"abc", np.uint8).copy()
    text = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(np.arange(4, dtype=np.int32)), pa.py_buffer(heap)])
    index = cairn.from_columns(["a", "b", "c"])
    with pytest.raises(cairn.OutputTypeError, match="apart from the keys'"):
        index.contains(text, out=heap.view(bool))
    assert index.contains(text, out=np.empty(3, bool)).all()


@pytest.mark.parametrize("value", [np.datetime64(3, "ns"), np.timedelta64(3, "ns"), np.ma.masked, np.ma.masked_array(3, mask=True)])
def test_scalars_whose_item_is_not_their_value(value: Any) -> None:
    index = cairn.from_columns(np.arange(10, dtype=np.uint64))
    for query in (index.find, lambda k: index.find([k]), lambda k: index.count(k)):
        with pytest.raises(cairn.KeyTypeError, match="expected"):
            query(value)


def test_columns_as_arrays_copy_as_asked() -> None:
    column = cairn.from_columns(np.arange(10, dtype=np.uint64)).scan(with_keys=True).keys
    assert column is not None
    values = column.to_numpy()
    assert np.shares_memory(np.asarray(column), values)
    assert np.shares_memory(np.asarray(column, dtype=np.uint64), values)
    assert np.asarray(column, dtype=np.int32).tolist() == list(range(10))
    copied = np.array(column, copy=True)
    assert copied.flags.writeable and not np.shares_memory(copied, values)
    with pytest.raises(ValueError, match="needs no copy"):
        column.__array__(np.dtype(np.int32), copy=False)


def test_messages_hold_zeros() -> None:
    with pytest.raises(cairn.InvalidArgument, match="'cpu:\0nope'"):
        cairn.from_columns([1], structure="cpu:\0nope")


FIRST_CALLS = """
import sys, threading
import cairn
assert "numpy" not in sys.modules, "what this tests does not happen"
index = cairn.from_columns([1, 2, 3])
sys.setswitchinterval(1e-4)
threads = [threading.Thread(target=index.find_first, args=([1],), daemon=True) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(30)
assert not any(thread.is_alive() for thread in threads)
"""


def test_first_calls_of_several_threads() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", FIRST_CALLS], timeout=100, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


CHILDREN = """
import atexit, os, pathlib, sys
import cairn
database, files = sys.argv[1], pathlib.Path(sys.argv[2])
snapshots = [cairn.Snapshot(database), cairn.Snapshot(sorted(files.glob("*.sst")))]
beside = sorted(path.name for path in files.iterdir())
index = cairn.open(sys.argv[3])
child = os.fork()
if child == 0:
    for snapshot in snapshots:
        try:
            snapshot.sequence
            os._exit(1)
        except cairn.Forked as error:
            assert "before this process was forked" in str(error)
    snapshots.pop().close()
    del snapshots, index
    atexit.register(print, "the child's end", flush=True)
    sys.exit(7)  # runs the exit handlers
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert status == 7, status
assert sorted(path.name for path in files.iterdir()) == beside, "the child removed what is the parent's"
assert snapshots[0].sequence > 0
"""


def test_a_forked_child_ends(table: Table, tmp_path: pathlib.Path) -> None:
    database = tmp_path / "db"
    load(database, {b"%03d" % i: bytes([i]) for i in range(200)})
    subprocess.run(["ldb", f"--db={database}", "compact"], check=True, capture_output=True)
    arguments = [str(table.directory), str(database), str(table.indexes / "u64")]
    done = subprocess.run([sys.executable, "-P", "-c", CHILDREN, *arguments], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "the child's end\n"), done.stderr


def test_paths_that_are_no_utf8_or_hold_zeros(table: Table, tmp_path: pathlib.Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff"
    made = cairn.build(table.directory, {odd: "value[0:1]:u8"})  # type: ignore[dict-item]
    assert list(made) == [os.fsdecode(odd)]
    with cairn.open(odd) as index:  # type: ignore[arg-type]
        assert index.directory == os.fsdecode(odd) and index.directory in repr(index)
        assert len(index) == len(table.keys)
    os.rename(table.directory, odd + b"db")
    try:
        with cairn.Snapshot(odd + b"db") as snapshot:
            assert os.fsdecode(odd) in snapshot.description and os.fsdecode(odd) in repr(snapshot)
    finally:
        os.rename(odd + b"db", table.directory)
    with pytest.raises(ValueError, match="zero byte"):
        cairn.build(table.directory, {str(tmp_path / "cut\0off"): "value[0:1]:u8"})
    assert not (tmp_path / "cut").exists()


def test_progress_that_is_called_whatever_its_truth(table: Table, tmp_path: pathlib.Path) -> None:
    class Calls(list[Any]):
        def __call__(self, *arguments: Any) -> None:
            self.append(arguments)

    calls = Calls()
    cairn.build(table.directory, {tmp_path / "index": "value[0:1]:u8"}, progress=calls)
    assert calls[-1] == ("write", len(table.keys), len(table.keys))


def test_no_columns_and_no_batches(table: Table) -> None:
    with pytest.raises(cairn.InvalidArgument, match="found none"):
        cairn.from_arrow(pa.table({"a": [1]}), [])
    index = table.open("u8_text")
    for options, message in (({"batches": [0]}, "sizes from 1"), ({"keys": (np.zeros(1, np.uint8), ["a"])}, "found tuple")):
        with pytest.raises(cairn.InvalidArgument, match=message):
            cairn.plot.measure(index, **options)  # type: ignore[arg-type]
