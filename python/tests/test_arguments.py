"""Arguments that functions reject, with errors of cairn that name the argument; and parameters of predicates."""

import pathlib
from collections.abc import Callable
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import Table, load

U8 = np.arange(3, dtype=np.uint8)


def values(table: Table, *names: str) -> cairn.IndexGroup:
    return cairn.IndexGroup({name: table.open(name, calibration="none", verify="metadata") for name in names})


def test_arguments_of_other_types_are_named(table: Table, tmp_path: pathlib.Path) -> None:
    index = table.open("u8")
    group = cairn.IndexGroup({"u8": index})
    other = str(tmp_path / "other")
    anything: Any = object()
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: cairn.open(anything), "directory: expected a path, as str, bytes or os.PathLike, found object"),
        (lambda: cairn.open(None), "directory: expected a path"),  # type: ignore[arg-type]
        (lambda: cairn.open(other, threads="4"), "threads: expected an integer, found str"),  # type: ignore[arg-type]
        (lambda: cairn.open(other, device=None), "device: expected a str, found NoneType"),  # type: ignore[arg-type]
        (lambda: cairn.open(other, devices=0), "devices: expected a sequence of integers, found int"),  # type: ignore[arg-type]
        (lambda: cairn.open(other, ordered_indexes="cpu:fast"), r"ordered_indexes: expected a sequence of names, found str; write \['name'\]"),
        (lambda: cairn.open(other, aggregates=[1]), r"aggregates\[0\]: expected a str, found int"),  # type: ignore[list-item]
        (lambda: cairn.Snapshot(3), "source: expected a path"),
        (lambda: cairn.Snapshot([3]), r"source\[0\]: expected a path"),
        (lambda: cairn.Snapshot(table.directory, column_family=None), "column_family: expected a str"),  # type: ignore[arg-type]
        (lambda: cairn.Snapshot(table.directory).split(1.5), "parts: expected an integer, found float"),  # type: ignore[arg-type]
        (lambda: cairn.build(table.directory, {other: 3}), "specs\\['.*other'\\]: expected a spec as a str, found int"),  # type: ignore[dict-item]
        (lambda: cairn.build(table.directory, {3: "value:text"}), "specs: expected a path as a directory, found int"),  # type: ignore[dict-item]
        (lambda: cairn.build(table.directory, "value:text"), "specs: expected a dict"),  # type: ignore[arg-type]
        (lambda: cairn.build(None, {other: "value:text"}), "source: expected a path"),  # type: ignore[arg-type]
        (lambda: cairn.build(table.directory, {other: "value:text"}, threads=2.5), "threads: expected an integer"),  # type: ignore[arg-type]
        (lambda: cairn.build(table.directory, {other: "value:text"}, prebuild_search_structure="yes"), "prebuild_search_structure: expected a bool"),  # type: ignore[arg-type]
        (lambda: cairn.from_columns(U8, types="u8"), "types: expected a sequence of names, found str"),
        (lambda: cairn.from_columns(U8, structure=None), "structure: expected a str, found NoneType"),  # type: ignore[arg-type]
        (lambda: index.scan(0, 9, bounds=None), "bounds: expected a str, found NoneType"),  # type: ignore[arg-type]
        (lambda: index.count(0, 9, bounds=b"[)"), "bounds: expected a str, found bytes"),  # type: ignore[arg-type]
        (lambda: index.scan(0, 9, limit=1.0), "limit: expected an integer, found float"),  # type: ignore[arg-type]
        (lambda: index.scan(0, 9, order=None), "order: expected a str"),  # type: ignore[arg-type]
        (lambda: index.scan(0, 9, columns="f"), "columns: expected a sequence of names, found str"),
        (lambda: index.scan(0, 9, columns=7), "columns: expected a sequence of names, found int"),  # type: ignore[arg-type]
        (lambda: index.scan(0, 9, with_keys=1), "with_keys: expected a bool, found int"),  # type: ignore[arg-type]
        (lambda: index.scan(0, 9, after=5), "after: expected a list"),  # type: ignore[arg-type]
        (lambda: index.find(U8, columns=b"f"), "columns: expected a sequence of names, found bytes"),  # type: ignore[arg-type]
        (lambda: index.find(U8, primary_keys="yes"), "primary_keys: expected a bool"),  # type: ignore[arg-type]
        (lambda: index.find(U8, route=None), "route: expected a str"),  # type: ignore[arg-type]
        (lambda: index.find(U8, latency_target="1"), "latency_target: expected a number, found str"),  # type: ignore[arg-type]
        (lambda: index.find(U8, timeout="1"), "timeout: expected a number, found str"),  # type: ignore[arg-type]
        (lambda: index.find(U8, explain=True), "explain: expected a cairn.Explain"),  # type: ignore[arg-type]
        (lambda: index.contains(U8, sorted_input=None), "sorted_input: expected a bool"),  # type: ignore[arg-type]
        (lambda: index.explain(3), "operation: expected a str"),  # type: ignore[arg-type]
        (lambda: index.fetch(3, U8), "database: expected a path"),
        (lambda: index.fetch(table.directory, U8, limit="1"), "limit: expected an integer"),  # type: ignore[arg-type]
        (lambda: index.catch_up(None), "database: expected a path"),
        (lambda: index.catch_up(table.directory, durable=0), "durable: expected a bool"),  # type: ignore[arg-type]
        (lambda: index.compact(threads=None), "threads: expected an integer"),  # type: ignore[arg-type]
        (lambda: index.verify(5), "database: expected a path"),
        (lambda: index.predicted_time("find", "many"), "queries: expected an integer"),  # type: ignore[arg-type]
        (lambda: index.aggregate([]), "aggregates: expected a dict"),  # type: ignore[arg-type]
        (lambda: index.aggregate({"n": "count"}, bounds=None), "bounds: expected a str"),  # type: ignore[arg-type]
        (lambda: index.group_by("u8", {"n": "count"}), "parts: expected an integer, found str"),  # type: ignore[arg-type]
        (lambda: index.group_by(1, {"n": "count"}, limit="1"), "limit: expected an integer"),  # type: ignore[arg-type]
        (lambda: group.count(3), "where: expected a str, found int"),  # type: ignore[arg-type]
        (lambda: group.count("u8 = 1", strategy=None), "strategy: expected a str"),  # type: ignore[arg-type]
        (lambda: group.where("u8 = 1", columns="u8"), "columns: expected a sequence of names, found str"),
        (lambda: group.where("u8 = 1", after=None), "after: expected bytes, found NoneType"),  # type: ignore[arg-type]
        (lambda: group.where("u8 = 1", order_by=["u8"]), "order_by: expected a str, found list"),  # type: ignore[arg-type]
        (lambda: group.where("u8 = 1", descending="desc"), "descending: expected a bool"),  # type: ignore[arg-type]
        (lambda: group.aggregate({"n": "count"}, group_by="u8"), "group_by: expected a sequence of names, found str"),
        (lambda: group.aggregate({"n": "count"}, order_by="n"), "order_by: expected a sequence of names, found str"),
        (lambda: group.explain("u8 = 1", limit="1"), "limit: expected an integer"),  # type: ignore[arg-type]
        (lambda: cairn.join(index, table.indexes / "u8"), r"right: expected a cairn.Index, found pathlib.\w+; open the directory with cairn.open\(\)"),  # type: ignore[arg-type]
        (lambda: cairn.join(None, index), "left: expected a cairn.Index, found NoneType"),  # type: ignore[arg-type]
        (lambda: cairn.join(index, index, left_columns="f"), "left_columns: expected a sequence of names"),
        (lambda: cairn.join(index, index, after=None), "after: expected bytes"),  # type: ignore[arg-type]
        (lambda: cairn.count_join(index, "u8"), "right: expected a cairn.Index, found str; open"),  # type: ignore[arg-type]
        (lambda: cairn.IndexGroup([str(table.indexes / "u8")]), r"indexes\[0\]: expected a cairn.Index, found str; open the directory"),  # type: ignore[list-item]
        (lambda: cairn.IndexGroup([index, 3]), r"indexes\[1\]: expected a cairn.Index, found int"),  # type: ignore[list-item]
        (lambda: cairn.IndexGroup([cairn.from_columns(U8)]), r"indexes\[0\]: expected a cairn.Index, found cairn._cairn.ColumnIndex"),  # type: ignore[list-item]
        (lambda: cairn.IndexGroup({"a": None}), r"indexes\['a'\]: expected a cairn.Index, found NoneType"),  # type: ignore[dict-item]
        (lambda: cairn.IndexGroup({3: index}), "indexes: a name: expected a str, found int"),  # type: ignore[dict-item]
        (lambda: cairn.IndexGroup(index), "indexes: expected a sequence of cairn.Index"),  # type: ignore[arg-type]
        (lambda: cairn.IndexGroup("u8"), "indexes: expected a sequence of cairn.Index"),  # type: ignore[arg-type]
        (lambda: cairn.IndexGroup(None), "indexes: expected a sequence of cairn.Index"),  # type: ignore[arg-type]
        (lambda: cairn.shards.ShardMap(3), "directory: expected a path"),  # type: ignore[arg-type]
        (lambda: cairn.shards.split_segments(other, 2, other), "segments: expected a sequence of paths, found str"),
        (lambda: cairn.shards.split_segments([3], 2, other), "segments: expected paths, found int"),  # type: ignore[list-item]
        (lambda: cairn.shards.publish_sources("one", other), "names: expected a sequence of paths, found str"),
        (lambda: cairn.shards.build(table.directory, "value:text", other, shards="2"), "shards: expected an integer"),  # type: ignore[arg-type]
    ]  # fmt: skip
    for call, message in wrong:
        with pytest.raises(cairn.ArgumentTypeError, match=message) as raised:
            call()
        assert isinstance(raised.value, TypeError) and isinstance(raised.value, ValueError)
    assert not pathlib.Path(other).exists()


def test_values_out_of_range_are_named(table: Table, tmp_path: pathlib.Path) -> None:
    index = table.open("u8")
    group = cairn.IndexGroup({"u8": index})
    other = str(tmp_path / "other")
    out_of_range: list[tuple[Callable[[int], object], tuple[int, ...], str]] = [
        (lambda n: index.scan(0, 9, limit=n), (-1, 2**64), "limit"),
        (lambda n: index.fetch(table.directory, U8, limit=n), (-1,), "limit"),
        (lambda n: index.group_by(1, {"n": "count"}, limit=n), (-1,), "limit"),
        (lambda n: group.where("u8 = 1", limit=n), (-1,), "limit"),
        (lambda n: group.aggregate({"n": "count"}, limit=n), (-1,), "limit"),
        (lambda n: cairn.join(index, index, limit=n), (-1,), "limit"),
        (lambda n: index.verify(table.directory, max_differences=n), (-1,), "max_differences"),
        (lambda n: cairn.open(table.indexes / "u8", threads=n), (-1, 4097, 10**30), "threads"),
        (lambda n: cairn.open(table.indexes / "u8", host_memory_budget=n), (-1,), "host_memory_budget"),
        (lambda n: index.compact(threads=n), (-1, 4097), "threads"),
        (lambda n: cairn.build(table.directory, {other: "value:bytes"}, threads=n), (-1, 4097), "threads"),
        (lambda n: cairn.build(table.directory, {other: "value:bytes"}, memory_budget=n), (-1,), "memory_budget"),
        (lambda n: cairn.from_columns(U8, threads=n), (-1, 4097), "threads"),
        (lambda n: cairn.shards.build(table.directory, "value:bytes", other, shards=n), (-1, 2**32), "shards"),
        (lambda n: cairn.shards.build(table.directory, "value:bytes", other, shards=1, threads=n), (-1, 4097), "threads"),
    ]
    for call, numbers, name in out_of_range:
        for number in numbers:
            with pytest.raises(cairn.InvalidArgument, match=f"^{name}: expected an integer from 0 to [0-9]+, found {number}$"):
                call(number)
    assert not pathlib.Path(other).exists()
    with cairn.open(table.indexes / "u8", threads=np.int32(3), calibration="none") as several:
        assert several.scan(0, 9, limit=np.uint8(2), with_keys=np.bool_(True)).keys is not None


def test_a_limit_of_0_is_an_empty_answer(table: Table) -> None:
    index = table.open("u8")
    group = cairn.IndexGroup({"u8": index})
    joined = cairn.join(index, index, with_keys=True, primary_keys=True, limit=0)
    found = group.where("u8 >= 0", columns=["u8"], limit=0)
    rows = group.aggregate({"n": "count"}, group_by=["u8"], limit=0)
    for answer, of in ((joined, cairn.join(index, index, with_keys=True, primary_keys=True, limit=1)), (found, group.where(columns=["u8"], limit=1))):
        assert len(answer) == 0 and answer.cursor == b"" and pa.table(answer).schema == pa.table(of).schema
    assert len(rows) == 0 and rows.cursor == b"" and pa.table(rows).num_rows == 0
    for matches in (index.scan(0, 9, limit=0), index.fetch(table.directory, lower=0, upper=9, limit=0)):
        assert len(matches) == 1 and matches.row_ids.tolist() == [] and matches.cursors in ([], [b""])
    assert index.group_by(1, {"n": "count"}, limit=0).offsets.tolist() == [0, 0]


def test_names_of_columns_are_there_once(tmp_path: pathlib.Path) -> None:
    load(tmp_path / "db", {b"a": b"1|2", b"b": b"1|3"})
    spec = "n = value.field('|', 0):u8, include(f = value.field('|', 1):u8, key = value.field('|', 1):u8)"
    cairn.build(tmp_path / "db", {tmp_path / "n": spec})
    index = cairn.open(tmp_path / "n")
    group = cairn.IndexGroup([index])
    for call in (
        lambda: index.find([1], columns=["f", "f"]),
        lambda: index.scan(0, 9, columns=["f", "key", "f"]),
        lambda: cairn.join(index, index, left_columns=["f", "f"]),
        lambda: cairn.join(index, index, right_columns=["f", "f"]),
        lambda: group.where(columns=["f", "f"]),
        lambda: group.aggregate({"n": "count"}, group_by=["f", "f"]),
        lambda: group.aggregate({"f": "count"}, group_by=["f"]),
    ):
        with pytest.raises(cairn.InvalidArgument, match="expected each name once, found 'f' twice"):
            call()
    # A conflict with names of the result itself is found when a table is created.
    matches = index.scan(0, 9, columns=["key"], with_keys=True)
    assert matches.columns["key"].to_list() == [2, 3]
    groups = index.group_by(1, {"query": "count"})
    assert groups.values["query"].to_list() == [2]
    for answer, name in ((matches, "key"), (groups, "query")):
        with pytest.raises(cairn.InvalidArgument, match=f"columns of different names, found '{name}' twice"):
            pa.table(answer)
    assert pa.table(index.scan(0, 9, columns=["key"])).column_names == ["query", "row_id", "key"]


def test_zero_bytes_in_names(table: Table) -> None:
    index = table.open("u8")
    group = cairn.IndexGroup({"u\0": index})
    names = {"a\0b": "count", "a\0c": ("min", "u\0")}
    groups = group.aggregate({"n": "count"} | names, group_by=["u\0"])
    assert list(groups.keys) == ["u\0"] and list(groups.values) == ["n", *names]
    assert list(index.group_by(1, {"a\0b": "count"}).values) == ["a\0b"]
    assert list(group.where(columns=["u\0"], limit=1).columns) == ["u\0"]
    # Arrow's C interface ends a name at its first zero byte.
    for answer in (groups, index.aggregate({"a\0b": "count"})):
        with pytest.raises(cairn.InvalidArgument, match=r"a name without zero bytes, found '[au]\\x00b?'"):
            pa.table(answer)


def test_empty_answers_are_taken_back(table: Table) -> None:
    for name in ("u32", "text"):
        index = table.open(name)
        for empty in (index.scan(keys=[]), index.find([])):
            assert empty.row_ids.flags.aligned and len(empty.row_ids) == 0
            assert index.primary_keys(empty.row_ids).to_list() == []
    index = table.open("u32")
    nothing = index.scan(1 << 31, 1 << 31, with_keys=True)
    assert nothing.keys is not None
    assert index.find(nothing.keys.to_numpy()).row_ids.tolist() == []
    group = values(table, "u32")
    none = group.where("FALSE")
    assert index.primary_keys(none.row_ids).to_list() == []


def test_parameters_of_predicates(table: Table) -> None:
    group = values(table, "u8", "text", "f64", "u8_text", "bytes")
    u8, text, f64 = (table.columns[name] for name in ("u8", "text", "f64"))

    def same(where: str, parameters: Any, expected: int) -> None:
        assert group.count(where, parameters) == expected
        assert len(group.where(where, parameters)) == expected
        assert group.aggregate({"n": "count"}, where, parameters).values["n"].to_list() == [expected]
        assert group.explain(where, parameters)

    for evil in ("nowhere' OR u8 >= 0 OR text = 'x", "a\\b", "?", "\0", "%", "'", '"'):
        same("text = ?", [evil], text.count(evil))
        same("text LIKE ?" if "%" not in evil else "text STARTS WITH ?", (evil,), sum(t is not None and t.startswith(evil) for t in text) if "%" in evil else text.count(evil))
    for value in (0, 7, np.uint8(7), np.int64(7), np.float64(7), 7.0, np.array(7)):
        same("u8 = ?", [value], u8.count(int(value)))
    same("text = ? AND u8 >= ?", ["Oslo", 18], sum(t == "Oslo" and n >= 18 for t, n in zip(text, u8, strict=True)))
    same("text = ? OR text = 'a?' OR \"text\" = ?", [np.str_("Oslo"), b"a"], sum(t in ("Oslo", "a") for t in text))
    same("text IN (?, ?, 'b')", ["Oslo", "a"], sum(t in ("Oslo", "a", "b") for t in text))
    same("u8 BETWEEN ? AND ?", [3, 9], sum(3 <= n <= 9 for n in u8))
    same("text = ?", [None], 0)
    same("NOT text = ?", [None], 0)
    same("f64 = ?", [float("inf")], f64.count(float("inf")))
    same("f64 = ?", [float("nan")], sum(v != v for v in f64))
    same("f64 = ?", [-0.0], sum(v == 0 and str(v) == "-0.0" for v in f64))
    # Keys of several parts.
    pairs = list(zip(u8, text, strict=True))
    one = next(pair for pair in pairs if pair[1] is not None)
    same("u8_text = ?", [one], pairs.count(one))
    same("u8_text = (?, ?)", one, pairs.count(one))
    same("u8_text IN (?, (?, 'a')) AND u8 >= ?", [one, 3, 0], sum(p in (one, (3, "a")) for p in pairs))
    same("u8_text = ?", [(one[0],)], sum(p[0] == one[0] and p[1] is not None for p in pairs))
    assert group.count(parameters=None) == len(table.keys)

    bad: list[tuple[str | None, Any, str]] = [
        ("text = ?", None, "expected a value of parameter 1"),
        ("text = ?", [], "parameter"),
        ("text = ?", ["a", "b"], "parameter"),
        ("text = 'a'", ["a"], "parameter"),
        (None, ["a"], "parameters: expected none without a predicate"),
        ("text = ?", "a", r"parameters: expected a list or tuple of values, found str; write \[value\]"),
        ("text = ?", {"a": 1}, "parameters: expected a list or tuple"),
        ("text = ?", [["a"]], r"parameters\[0\]: expected str, bytes, int, float, None or a tuple of these, found list"),
        ("u8 = ?", [True], r"parameters\[0\]: expected .*, found bool"),
        ("u8 = ?", [np.bool_(True)], r"parameters\[0\]: expected"),
        ("u8 = ?", [2**70], r"parameters\[0\]: expected an integer of at most 64 bits"),
        ("u8 = ?", ["a"], "expected a whole number"),
        ("text = ?", ["\ud800"], r"parameters\[0\]: .*lone surrogate"),
        ("u8_text = ?", [()], r"parameters\[0\]: expected the values of a key's parts, found none"),
        ("u8_text = ?", [(1, object())], r"parameters\[0\], part 2: expected str"),
        ("u8_text = ?", [(1, "a", 2)], "parts|values"),
        ("? = 1", ["u8"], "offset 0"),
    ]
    for where, parameters, message in bad:
        for call in (group.count, group.where, group.explain, lambda w, p: group.aggregate({"n": "count"}, w, p)):
            with pytest.raises(cairn.InvalidArgument, match=message):
                call(where, parameters)  # type: ignore[operator]
