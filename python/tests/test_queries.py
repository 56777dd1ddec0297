"""Every query for every type of key, compared with a sorted list."""

import bisect
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import DTYPES, Table, order
from hypothesis import given
from hypothesis import strategies as st

ARROW_TEXT = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view(), pa.binary_view()]
TYPES = [*DTYPES, "text", "bytes"]


def column_of(name: str) -> str:
    return "text" if name == "bytes" else name


def ends(entries: list[tuple[Any, int]], key: Any) -> tuple[int, int]:
    keys = [order(k) for k, _ in entries]
    return bisect.bisect_left(keys, order(key)), bisect.bisect_right(keys, order(key))


def draw_keys(data: st.DataObject, table: Table, name: str) -> list[Any]:
    """Keys that exist, and keys that may not."""
    present = st.sampled_from([v for v in table.columns[column_of(name)] if v is not None])
    if name in ("text", "bytes"):
        absent: st.SearchStrategy[Any] = st.text(max_size=8)
    elif name[0] == "f":
        absent = st.floats(width=32 if name == "f32" else 64)
    else:
        info = np.iinfo(DTYPES[name])
        absent = st.integers(int(info.min), int(info.max))
    return data.draw(st.lists(st.one_of(present, absent), max_size=30))


def batch_of(data: st.DataObject, name: str, keys: list[Any]) -> Any:
    """The keys in one of the accepted forms."""
    if name in DTYPES:
        array = np.array(keys, dtype=DTYPES[name])
        return data.draw(st.sampled_from([array, pa.array(array), pa.chunked_array([array[:3], array[3:]]), keys, tuple(keys)]))
    encoded = [key.encode() for key in keys]
    if data.draw(st.booleans()):
        return data.draw(st.sampled_from([keys, encoded]))
    arrow = pa.array(encoded, type=pa.binary()).cast(data.draw(st.sampled_from(ARROW_TEXT[:4])))
    form = data.draw(st.sampled_from(["array", "slice", "chunked", "view"]))
    if form == "slice":
        return pa.concat_arrays([arrow, arrow, arrow])[len(arrow) : 2 * len(arrow)]
    if form == "view":
        return pa.array(encoded if pa.types.is_binary(arrow.type) else keys, type=data.draw(st.sampled_from(ARROW_TEXT[4:])))
    return arrow if form == "array" else pa.chunked_array([arrow[:2], arrow[2:2], arrow[2:]])


@pytest.mark.parametrize("name", TYPES)
def test_points_are_those_of_a_sorted_list(table: Table, name: str) -> None:
    index = table.open(name)
    entries = [e for e in table.entries(column_of(name)) if e[0] is not None]
    assert len(index) == len(entries)
    assert index.key_types == [name]

    @given(st.data())
    def check(data: st.DataObject) -> None:
        keys = draw_keys(data, table, name)
        batch = batch_of(data, name, keys)
        found = index.find(batch, primary_keys=True)
        expected = [[row for _, row in entries[slice(*ends(entries, key))]] for key in keys]
        assert [found[i].tolist() for i in range(len(keys))] == expected
        assert found.offsets.tolist() == [0, *np.cumsum([len(rows) for rows in expected])]
        assert found.offsets.dtype == np.uint64 and found.row_ids.dtype == np.uint32
        assert found.primary_keys is not None
        assert found.primary_keys.to_list() == [table.keys[row] for rows in expected for row in rows]
        assert index.find_first(batch).tolist() == [rows[0] if rows else cairn.NO_ROW for rows in expected]
        assert index.contains(batch).tolist() == [bool(rows) for rows in expected]
        assert index.count(keys=batch).tolist() == [len(rows) for rows in expected]

    check()


@pytest.mark.parametrize("name", TYPES)
def test_ranges_are_those_of_a_sorted_list(table: Table, name: str) -> None:
    index = table.open(name)
    entries = [e for e in table.entries(column_of(name)) if e[0] is not None]

    @given(st.data(), st.sampled_from(["[)", "[]", "(]", "()"]), st.sampled_from(["asc", "desc"]), st.integers(1, 50))
    def check(data: st.DataObject, bounds: str, direction: str, limit: int) -> None:
        lower, upper = draw_keys(data, table, name), draw_keys(data, table, name)
        size = min(len(lower), len(upper))
        lower, upper = lower[:size], upper[:size]
        slices = []
        for low, high in zip(lower, upper, strict=True):
            begin = ends(entries, low)[0 if bounds[0] == "[" else 1]
            end = ends(entries, high)[1 if bounds[1] == "]" else 0]
            slices.append(entries[begin:end])
        low_batch, high_batch = batch_of(data, name, lower), batch_of(data, name, upper)
        assert index.count(low_batch, high_batch, bounds=bounds).tolist() == [len(s) for s in slices]
        expected = [s if direction == "asc" else s[::-1] for s in slices]
        scanned = index.scan(low_batch, high_batch, bounds=bounds, order=direction, limit=limit, with_keys=True)
        assert [scanned[i].tolist() for i in range(size)] == [[row for _, row in s[:limit]] for s in expected]
        assert scanned.keys is not None
        keys = [order(key.decode() if isinstance(key, bytes) else key) for key in scanned.keys.to_list()]
        assert keys == [order(key) for s in expected for key, _ in s[:limit]]
        again = index.scan(low_batch, high_batch, bounds=bounds, order=direction, limit=limit, after=scanned.cursors)
        for i in range(size):
            # An empty cursor means that the range has ended; as `after` it starts again.
            if scanned.cursors[i]:
                assert again[i].tolist() == [row for _, row in expected[i][limit : 2 * limit]]

    check()


def test_open_ends_and_everything(table: Table) -> None:
    index = table.open("u32")
    entries = table.entries("u32")
    keys = np.array(sorted({key for key, _ in entries})[::50], dtype=np.uint32)
    below = [ends(entries, int(key))[0] for key in keys]
    assert index.count(None, keys).tolist() == below
    assert index.count(keys).tolist() == [len(entries) - n for n in below]
    assert index.count().tolist() == [len(entries)]
    assert index.scan(order="desc", limit=5)[0].tolist() == [row for _, row in entries[::-1][:5]]


@given(data=st.data())
@pytest.mark.parametrize("names", [("u8", "text"), ("i16", "f32"), ("u8", "i16")])
def test_composites_are_tuples(table: Table, names: tuple[str, str], data: st.DataObject) -> None:
    index = table.open("_".join(names))
    entries = [e for e in table.entries(*names) if None not in e[0]]
    drawn = data.draw(st.lists(st.sampled_from(entries), max_size=20))
    keys = [key for key, _ in drawn]
    expected = [[row for key, row in entries if tuple(map(order, key)) == tuple(map(order, k))] for k in keys]
    columns = []
    for part, name in enumerate(names):
        values = [key[part] for key in keys]
        columns.append(pa.array(values, pa.string()) if name == "text" else pa.array(np.array(values, DTYPES[name])))
    table_of_keys = pa.table(columns, names=["a", "b"])
    struct = pa.StructArray.from_arrays(columns, names=["a", "b"])
    arrays = tuple(c if n == "text" else c.to_numpy() for c, n in zip(columns, names, strict=True))
    for batch in (keys, tuple(columns), table_of_keys, struct, arrays, pa.concat_tables([table_of_keys[:2], table_of_keys[2:]])):
        assert [rows.tolist() for rows in map(index.find(batch).__getitem__, range(len(keys)))] == expected
    for key, rows in zip(keys[:2], expected, strict=False):
        assert index.find(key)[0].tolist() == rows
    if keys:
        leading = [key[0] for key in keys]
        counts = [sum(order(k[0]) == order(first) for k, _ in entries) for first in leading]
        assert index.count(leading=leading).tolist() == counts
        assert index.count(leading=[(first,) for first in leading]).tolist() == counts


def test_prefixes(table: Table) -> None:
    texts = [t for t in table.columns["text"] if t is not None]
    prefixes = ["", "a", "a\0", "Lis", "Lisbon1", "東", "nothing"]
    expected = [sum(t.startswith(p) for t in texts) for p in prefixes]
    for name in ("text", "bytes", "text_nulls"):
        assert table.open(name).count(prefix=prefixes).tolist() == expected
    assert table.open("text").count(prefix=pa.array(prefixes)).tolist() == expected
    both = table.open("u8_text")
    pairs = [(a, t) for a, t in zip(table.columns["u8"], table.columns["text"], strict=True) if t is not None]
    first = pairs[0][0]
    assert both.count(prefix=[(first, "Lis")]).tolist() == [sum(a == first and t.startswith("Lis") for a, t in pairs)]
    # An end with fewer parts means the first key that begins with them.
    assert both.count((first,), (first + 1,)).tolist() == [sum(a == first for a, _ in pairs)]


def test_nulls_where_the_index_keeps_them(table: Table) -> None:
    index = table.open("text_nulls")
    nulls = [row for row, text in enumerate(table.columns["text"]) if text is None]
    assert nulls
    for keys in ([None, "Oslo"], pa.array([None, "Oslo"]), pa.array(["x", None, "Oslo"])[1:], pa.chunked_array([[None], ["Oslo"]], pa.string())):
        found = index.find(keys)
        assert found[0].tolist() == nulls
        assert found[1].tolist() == [row for row, text in enumerate(table.columns["text"]) if text == "Oslo"]
    first = index.scan(limit=len(nulls) + 1, with_keys=True).keys
    assert first is not None and first.to_list()[:-1] == [None] * len(nulls) and first[-1] is not None
    assert pa.array(first).null_count == len(nulls)
    with pytest.raises(cairn.InvalidArgument, match="value 1: expected a value, found null"):
        table.open("text").find(pa.array(["a", None]))


def test_results_go_where_the_caller_says(table: Table) -> None:
    index = table.open("u64")
    keys = np.array(table.columns["u64"][:100], dtype=np.uint64)
    rows, found, counts = np.empty(100, np.uint32), np.empty(100, bool), np.empty(100, np.uint64)
    assert index.find_first(keys, out=rows) is rows
    assert rows.tolist() == index.find_first(keys).tolist()
    assert index.contains(keys, out=found) is found and found.all()
    assert index.count(keys=keys, out=counts) is counts and counts.tolist() == index.count(keys=keys).tolist()
    for bad in (np.empty(100, np.int32), np.empty(99, np.uint32), np.empty(200, np.uint32)[::2], np.empty((100, 1), np.uint32), [0] * 100):
        with pytest.raises(cairn.OutputTypeError, match="expected"):
            index.find_first(keys, out=bad)  # type: ignore[arg-type]
    rows.flags.writeable = False
    with pytest.raises(cairn.OutputTypeError, match="written"):
        index.find_first(keys, out=rows)
    with pytest.raises(cairn.OutputTypeError, match="apart"):
        index.find_first(keys, out=keys.view(np.uint32)[:100])


def test_explain_and_routes(table: Table) -> None:
    index = table.open("u64")
    explain = index.explain("find", np.arange(50, dtype=np.uint64))
    assert explain.queries == 50 and explain.operation == "find" and explain.route
    assert explain.route in [route for route, _, _ in explain.candidates]
    assert explain.measured > 0 and explain.route in repr(explain)
    for route, _, _ in explain.candidates:
        assert index.explain("contains", [1, 2], route=route).route == route
    with pytest.raises(cairn.InvalidArgument, match="cpu:"):
        index.find([1], route="no such route")
    assert index.find([1], latency_target=0.5, sorted_input=True) is not None
    for ask in (
        lambda timeout: index.find([1], timeout=timeout),
        lambda timeout: index.find([1], primary_keys=True, timeout=timeout),
        lambda timeout: index.count(0, 9, timeout=timeout),
        lambda timeout: index.aggregate({"n": "count"}, timeout=timeout),
        lambda timeout: index.group_by(1, {"n": "count"}, timeout=timeout),
        lambda timeout: cairn.join(index, index, timeout=timeout),
        lambda timeout: cairn.count_join(index, index, timeout=timeout),
        lambda timeout: cairn.IndexGroup({"u64": index}).count(timeout=timeout),
        lambda timeout: index.verify(timeout=timeout),
        lambda timeout: index.verify(table.directory, timeout=timeout),
    ):
        ask(3600)
        with pytest.raises(cairn.DeadlineExceeded):
            ask(0)
    with pytest.raises(cairn.InvalidArgument, match="timeout"):
        index.find([1], timeout=-1)
    assert index.predicted_time("find", 1000) > 0 and index.best_batch("find") >= 1
    stats = index.stats()
    assert stats["entries"] == len(index) and stats["routes"][0]["batches"] > 0
    assert index.verify() == [] and index.verify(table.directory) == []


def test_one_key_is_a_batch_of_one(table: Table) -> None:
    index = table.open("i32")
    value = table.columns["i32"][7]
    for key in (value, np.int32(value), np.int64(value), np.array(value), [value], np.array([value], np.int32)):
        assert index.contains(key).tolist() == [True]
    assert table.open("text").find_first("Oslo").tolist() == table.open("text").find_first(b"Oslo").tolist()


def test_read_only_and_empty_batches(table: Table) -> None:
    index = table.open("u64")
    keys = np.array(table.columns["u64"][:10], dtype=np.uint64)
    keys.flags.writeable = False
    assert index.contains(keys).all()
    for empty in ([], (), np.array([], np.uint64), pa.array([], pa.uint64()), pa.chunked_array([], pa.uint64())):
        assert index.find_first(empty).tolist() == []
        found = index.find(empty, primary_keys=True)
        assert len(found) == 0 and pa.table(found).num_rows == 0
    assert table.open("text").contains(pa.array([], pa.string())).tolist() == []
