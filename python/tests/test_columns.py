"""Indexes over columns without a database, compared with NumPy and grouping as in pandas."""

import math
from collections import defaultdict
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import DTYPES, order
from hypothesis import given
from hypothesis import strategies as st


def rows_by_key(keys: list[Any], row_ids: list[int]) -> dict[Any, list[int]]:
    rows = defaultdict(list)
    for key, row in zip(keys, row_ids, strict=True):
        rows[order(key)].append(row)
    return {key: sorted(found) for key, found in rows.items()}


@pytest.mark.parametrize("name", DTYPES)
def test_numbers(name: str) -> None:
    @given(st.data(), st.booleans())
    def check(data: st.DataObject, arrow: bool) -> None:
        if name[0] == "f":
            value: st.SearchStrategy[Any] = st.floats(width=32 if name == "f32" else 64)
        else:
            info = np.iinfo(DTYPES[name])
            value = st.integers(int(info.min), int(info.max)) | st.integers(0, 5)
        values = data.draw(st.lists(value, max_size=50))
        array = np.array(values, dtype=DTYPES[name])
        index = cairn.from_columns(pa.array(array) if arrow else array)
        assert index.key_types == [name] and len(index) == len(values)
        asked = np.array(values + data.draw(st.lists(value, max_size=5)), dtype=DTYPES[name])
        expected = rows_by_key(values, list(range(len(values))))
        found = index.find(asked)
        assert [found[i].tolist() for i in range(len(asked))] == [expected.get(order(v), []) for v in asked.tolist()]
        assert index.contains(asked).tolist() == [order(v) in expected for v in asked.tolist()]
        scanned = index.scan(with_keys=True)
        assert scanned.keys is not None
        assert [order(v) for v in scanned.keys.to_list()] == sorted(order(v) for v in values)
        assert scanned.keys.to_numpy().dtype == array.dtype

    check()


@given(st.lists(st.text(max_size=6), max_size=40), st.booleans())
def test_text(values: list[str], as_bytes: bool) -> None:
    keys: Any = [v.encode() for v in values] if as_bytes else values
    index = cairn.from_arrow(pa.array(keys, pa.binary() if as_bytes else pa.string()))
    assert index.key_types == ["bytes" if as_bytes else "text"]
    expected = rows_by_key(values, list(range(len(values))))
    found = index.find([*keys, "no such key"])
    assert [found[i].tolist() for i in range(len(keys))] == [expected[order(v)] for v in values]
    assert found[-1].tolist() == []
    assert index.count(prefix="a").tolist() == [sum(v.startswith("a") for v in values)]


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(-2, 2)), max_size=40))
def test_composites_with_nulls(values: list[tuple[int, int | None]]) -> None:
    data = pa.table({"a": pa.array([a for a, _ in values], pa.uint16()), "b": pa.array([b for _, b in values], pa.int32())})
    index = cairn.from_arrow(data, ["a", "b"], nulls="last")
    assert index.key_types == ["u16", "i32"]
    found = index.find(values)
    for i, key in enumerate(values):
        assert found[i].tolist() == [row for row, other in enumerate(values) if other == key]
    assert cairn.from_columns(data, nulls="last").count().tolist() == [len(values)]
    scanned = index.scan(with_keys=True)
    assert scanned.keys is not None
    last = sorted(values, key=lambda v: (v[0], math.inf if v[1] is None else v[1]))
    assert scanned.keys.to_list() == last == [tuple(row.values()) for row in pa.array(scanned.keys).to_pylist()]
    if any(b is None for _, b in values):
        with pytest.raises(cairn.InvalidArgument, match="found null"):
            cairn.from_arrow(data, ["a", "b"])


def test_against_numpy_on_many() -> None:
    rng = np.random.default_rng(1)
    for dtype in (np.uint64, np.int32, np.float64):
        values = rng.integers(0, 20_000, 100_000).astype(dtype)
        index = cairn.from_columns(values)
        asked = rng.integers(0, 25_000, 10_000).astype(dtype)
        order_of = np.argsort(values, kind="stable")
        ordered = values[order_of]
        begin, end = np.searchsorted(ordered, asked, "left"), np.searchsorted(ordered, asked, "right")
        assert (index.count(keys=asked) == end - begin).all()
        assert (index.contains(asked) == np.isin(asked, values)).all()
        first = np.where(end > begin, order_of[np.minimum(begin, len(values) - 1)], cairn.NO_ROW)
        assert (index.find_first(asked) == first).all()
        found = index.find(asked)
        assert (np.diff(found.offsets) == end - begin).all()
        assert (found.row_ids[: end[0] - begin[0]] == order_of[begin[0] : end[0]]).all()


def test_many_texts() -> None:
    """Enough keys that several threads write their views."""
    rng = np.random.default_rng(1)
    numbers = rng.permutation(400_000).astype(np.int64)
    texts = pa.array(numbers).cast(pa.large_string())
    index = cairn.from_arrow(texts)
    row_of = np.empty(len(numbers), np.uint32)
    row_of[numbers] = np.arange(len(numbers))
    asked = rng.integers(0, len(numbers), 300_000)
    for keys in (pa.array(asked).cast(pa.string()), pa.array(asked).cast(pa.large_string()), pa.array(asked).cast(pa.string())[7:]):
        assert (index.find_first(keys) == row_of[asked[-len(keys) :]]).all()
    offsets = np.arange(300_001, dtype=np.int32)
    offsets[170_000] = 3
    broken = pa.Array.from_buffers(pa.string(), 300_000, [None, pa.py_buffer(offsets), pa.py_buffer(bytes(300_000))])
    with pytest.raises(cairn.InvalidArgument, match="element 170000"):
        index.find_first(broken)


def test_row_ids_types_and_structures() -> None:
    keys = np.array([5, 1, 5], np.uint32)
    index = cairn.from_columns(keys, np.array([70, 8, 9], np.uint32), structure="cpu:sorted_array")
    assert index.find([5])[0].tolist() == [9, 70] and index.structure == "cpu:sorted_array"
    assert index.memory_bytes == 24 and index.kind == "u32" and "u32" in repr(index)
    assert cairn.from_columns([3, -1]).key_types == ["i64"]
    assert cairn.from_columns([3, 1], types=["u8"]).find([1])[0].tolist() == [1]
    assert cairn.from_columns([("a", 2), ("b", 1)], types=["text", "u8"]).find(("b", 1))[0].tolist() == [1]
    bad: list[tuple[Any, dict[str, Any], str]] = [
        (keys, {"row_ids": np.array([1], np.uint32)}, "expected 3, one per key, found 1"),
        (keys, {"row_ids": np.array([1, 2, -3])}, "row_ids: value 2: expected an integer that uint32 has, found -3"),
        (keys, {"row_ids": np.array([1, 2, cairn.NO_ROW], np.uint32)}, "row id 2"),
        (keys, {"row_ids": np.array([1, 2, 1], np.uint32)}, "0 and 1|1 and 2"),
        (keys, {"structure": "cpu:nothing"}, "cpu:nothing"),
        (keys, {"types": ["u128"]}, "u128"),
        (keys, {"types": ["text"]}, "expected an Arrow array of strings"),
        (keys, {"nulls": "keep"}, "refuse"),
        (keys[::2], {}, "contiguous"),
        (np.array(["a"]), {}, "set types= to"),
        ([], {}, "set types= to"),
        ({}, {}, "set types= to"),
    ]
    for data, options, message in bad:
        with pytest.raises(cairn.InvalidArgument, match=message):
            cairn.from_columns(data, **options)
    with pytest.raises(cairn.Unavailable):
        cairn.from_columns(keys, structure="gpu:packed")
    for call in (
        lambda: index.find([1], primary_keys=True),
        lambda: index.explain("find", [1]),
        lambda: index.find([1], route="cpu:packed"),
        lambda: index.scan(after=[b""]),
    ):
        with pytest.raises(cairn.Unimplemented) as raised:
            call()
        assert isinstance(raised.value, NotImplementedError)


def test_pandas_and_polars() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": [3, 1, 3], "s": ["x", "y", "x"]})
    assert cairn.from_arrow(frame, "n").find([3])[0].tolist() == [0, 2]
    assert cairn.from_arrow(frame, "s").find(["x"])[0].tolist() == [0, 2]
    assert cairn.from_arrow(frame, ["s", "n"]).find(("y", 1))[0].tolist() == [1]
    groups = frame.groupby("n").indices
    found = cairn.from_arrow(frame, "n").find(list(groups))
    assert [found[i].tolist() for i in range(len(groups))] == [rows.tolist() for rows in groups.values()]
    pl = pytest.importorskip("polars")
    lazy = pl.DataFrame({"n": [3, 1, 3], "s": ["x", "y", "x"]})
    assert cairn.from_arrow(lazy, "s").find(lazy["s"])[1].tolist() == [1]
    assert cairn.from_arrow(lazy, ["s", "n"]).find(lazy.select("s", "n"))[2].tolist() == [0, 2]
    assert pl.DataFrame(cairn.from_arrow(lazy, "n").find([3])).shape == (2, 2)
