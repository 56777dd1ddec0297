"""Sharded indexes: the steps, 64-bit rows, and results compared with the same index unsharded."""

import pathlib
import random
import signal
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from cairn import shards
from conftest import Table, load

MakeTable = Callable[[Mapping[bytes, bytes]], pathlib.Path]
SPEC = "value[0:8]:u64be"


def rows_of(count: int, seed: int = 0) -> dict[bytes, bytes]:
    """Rows. A third share one key; the others' keys are few, many or extreme."""
    rng = random.Random(seed)
    keys = [7, 7, rng.randrange, 0, (1 << 64) - 1, 1 << 32]
    rows = {}
    for n in range(count):
        key = rng.choice(keys)
        rows[b"%08d" % n] = struct.pack(">Q", key if isinstance(key, int) else key(5000)) + b"row %d" % n
    return rows


@dataclass
class Pair:
    database: pathlib.Path
    directory: pathlib.Path  # of the sharded index
    plain: cairn.Index
    sharded: cairn.Index


@pytest.fixture
def pair(make_table: MakeTable, tmp_path: pathlib.Path) -> Pair:
    database = make_table(rows_of(2000))
    cairn.build(database, {tmp_path / "plain": SPEC})
    report = shards.build(database, SPEC, tmp_path / "sharded", shards=5, segments=3, threads=2)
    assert (report.rows, report.entries) == (2000, 2000)
    return Pair(database, tmp_path / "sharded", cairn.open(tmp_path / "plain"), cairn.open(tmp_path / "sharded", calibration="none"))


def keys_of(pair: Pair) -> np.ndarray:
    column = pair.plain.scan(with_keys=True).keys
    assert column is not None
    present = np.unique(column.to_numpy())
    return np.concatenate([present, present + np.uint64(1), np.arange(0, 6000, 37, dtype=np.uint64)])


def test_an_index_in_shards_answers_as_any(pair: Pair) -> None:
    plain, sharded = pair.plain, pair.sharded
    assert not plain.in_shards and plain.row_dtype == np.uint32 and plain.no_row == cairn.NO_ROW == 2**32 - 1
    assert sharded.in_shards and sharded.row_dtype == np.uint64 and sharded.no_row == cairn.NO_GLOBAL_ROW == 2**64 - 1
    assert len(sharded) == len(plain) == 2000 and sharded.spec == plain.spec and sharded.sequence == plain.sequence
    keys = keys_of(pair)
    expected, found = plain.find(keys, primary_keys=True), sharded.find(keys, primary_keys=True)
    assert found.row_ids.dtype == np.uint64 and found[0].dtype == np.uint64
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.primary_keys is not None and expected.primary_keys is not None
    assert found.primary_keys.to_list() == expected.primary_keys.to_list()
    assert sharded.primary_keys(found.row_ids).to_list() == expected.primary_keys.to_list()
    first, first_expected = sharded.find_first(keys), plain.find_first(keys)
    assert first.dtype == np.uint64
    assert (first == cairn.NO_GLOBAL_ROW).tolist() == (first_expected == cairn.NO_ROW).tolist()
    there = first != cairn.NO_GLOBAL_ROW
    assert sharded.primary_keys(first[there]).to_list() == plain.primary_keys(first_expected[there]).to_list()
    # A key's rows span shards; the first row is that with the lowest primary key.
    seven = sharded.find([7]).row_ids
    assert len(set((seven >> np.uint64(32)).tolist())) > 1 and (np.diff(seven.astype(np.int64)) > 0).all()
    assert sharded.find_first([7])[0] == seven[0]
    assert sharded.contains(keys).tolist() == plain.contains(keys).tolist()
    assert sharded.count(keys=keys).tolist() == plain.count(keys=keys).tolist()
    assert sharded.count(keys, keys[::-1].copy(), bounds="[]").tolist() == plain.count(keys, keys[::-1].copy(), bounds="[]").tolist()
    explain = sharded.explain("find_first", keys)
    assert explain.queries == len(keys) and explain.route
    out = np.empty(len(keys), np.uint64)
    assert sharded.find_first(keys, out=out) is out and out.tolist() == first.tolist()


def test_scans_go_on_over_shards(pair: Pair) -> None:
    for direction in ("asc", "desc"):
        whole = pair.plain.scan(order=direction, primary_keys=True, with_keys=True)
        pages: list[bytes] = []
        after = None
        while after is None or after[0]:
            page = pair.sharded.scan(order=direction, limit=300, primary_keys=True, with_keys=True, after=after)
            assert page.primary_keys is not None and page.row_ids.dtype == np.uint64
            pages += page.primary_keys.to_list()
            after = page.cursors
        assert whole.primary_keys is not None and pages == whole.primary_keys.to_list()


def test_arrow_has_rows_of_64_bits(pair: Pair) -> None:
    found = pair.sharded.find([7, 3, 0], primary_keys=True)
    table = pa.table(found)
    assert table.schema.field("row_id").type == pa.uint64()
    assert table["row_id"].to_pylist() == found.row_ids.tolist()
    empty = pair.sharded.find(np.array([], np.uint64))
    assert empty.row_ids.dtype == np.uint64 and len(empty.row_ids) == 0 and pa.table(empty).num_rows == 0
    # The memory is the same each time.
    assert found.row_ids is found.row_ids and not found.row_ids.flags.writeable


def test_whole_rows_are_fetched(pair: Pair) -> None:
    rows = pair.sharded.fetch(pair.database, [7], limit=10)
    expected = pair.plain.fetch(pair.database, [7], limit=10)
    assert rows.values is not None and expected.values is not None
    assert rows.values.to_list() == expected.values.to_list() and rows.row_ids.dtype == np.uint64
    assert pair.sharded.verify() == [] and pair.sharded.verify(pair.database) == []


def test_rows_of_another_width_are_refused(pair: Pair) -> None:
    with pytest.raises(cairn.OutputTypeError, match="uint64"):
        pair.sharded.find_first([1], out=np.empty(1, np.uint32))
    with pytest.raises(cairn.KeyTypeError, match="uint64"):
        pair.sharded.primary_keys(np.array([0], np.uint32))
    with pytest.raises(cairn.OutOfRange):
        pair.sharded.primary_keys(np.array([9 << 32], np.uint64))
    with pytest.raises(cairn.OutOfRange):
        pair.sharded.primary_keys(np.array([cairn.NO_GLOBAL_ROW], np.uint64))
    with pytest.raises(cairn.KeyTypeError, match="uint32"):
        pair.plain.primary_keys(np.array([0], np.uint64))
    with pytest.raises(cairn.Unimplemented, match="not sharded"):
        pair.sharded.on_device()
    with pytest.raises(cairn.FailedPrecondition, match="next generation"):
        pair.sharded.catch_up(pair.database)


def test_text_and_composites(table: Table, tmp_path: pathlib.Path) -> None:
    for name in ("text", "u8_text", "text_nulls", "f64"):
        plain = table.open(name)
        shards.build(table.directory, plain.spec, tmp_path / name, shards=4)
        sharded = cairn.open(tmp_path / name, calibration="none")
        whole, expected = sharded.scan(with_keys=True, primary_keys=True), plain.scan(with_keys=True, primary_keys=True)
        assert whole.primary_keys is not None and expected.primary_keys is not None
        assert whole.primary_keys.to_list() == expected.primary_keys.to_list()
        assert whole.keys is not None and expected.keys is not None
        assert repr(whole.keys.to_list()) == repr(expected.keys.to_list())
    assert cairn.open(tmp_path / "text").count(prefix=["Lis", "", "z"]).tolist() == table.open("text").count(prefix=["Lis", "", "z"]).tolist()


def test_built_step_by_step(pair: Pair, tmp_path: pathlib.Path) -> None:
    work, out = tmp_path / "work", tmp_path / "steps"
    work.mkdir()
    out.mkdir()
    seen: list[str] = []
    with cairn.Snapshot(pair.database) as snapshot:
        ranges = snapshot.split(4)
        assert ranges[0][0] == b"" and ranges[-1][1] is None
        assert all(before[1] == after[0] for before, after in zip(ranges, ranges[1:], strict=False))
        segments = [work / shards.segment_directory_name(i) for i in range(len(ranges))]
        reports = [
            shards.extract_segment(snapshot, r, SPEC, s, threads=1, progress=lambda phase, *_: seen.append(phase))
            for r, s in zip(ranges, segments, strict=True)
        ]
    assert sum(report.entries for report in reports) == 2000
    plan = work / "plan"
    assert shards.split_segments(segments, 3, plan, memory_budget=1 << 20) == 3 == shards.shards_of_plan(plan)
    # Either of two attempts at a shard is used.
    names = [shards.shard_directory_name(i) for i in (0, 1, 2, 1)]
    assert len(set(names)) == 4
    sizes = [shards.build_shard(plan, i, out / name).entries for i, name in zip((0, 1, 2, 1), names, strict=True)]
    assert sizes == [667, 667, 666, 667] or max(sizes) - min(sizes) <= 1
    with pytest.raises(cairn.NotFound):
        cairn.open(out)
    shards.publish_shards(plan, out)
    built = cairn.open(out)
    assert built.scan(primary_keys=True).primary_keys.to_list() == pair.plain.scan(primary_keys=True).primary_keys.to_list()  # type: ignore[union-attr]
    assert len([p for p in out.iterdir() if p.is_dir()]) == 3


def test_by_source(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = []
    for i in range(3):
        load(tmp_path / f"db{i}", rows_of(200, seed=i))
        names.append(shards.shard_directory_name(i))
        cairn.build(tmp_path / f"db{i}", {out / names[-1]: SPEC})
    shards.publish_sources(names, out)
    index = cairn.open(out)
    found = index.find([7], primary_keys=True).row_ids
    assert set((found >> np.uint64(32)).tolist()) == {0, 1, 2}
    keys = index.scan(with_keys=True).keys
    assert len(index) == 600 and keys is not None and (np.diff(keys.to_numpy().astype(np.float64)) >= 0).all()
    load(tmp_path / "db1", {b"later": struct.pack(">Q", 123456)})
    index.catch_up(tmp_path / "db1", skip_identity_check=True)
    assert index.count(keys=[123456]).tolist() == [1]
    with pytest.raises(cairn.FailedPrecondition):
        shards.publish_sources([names[0], names[0]], out)
    shard_map = shards.ShardMap(out)
    assert (shard_map.mode, len(shard_map), shard_map.generation) == ("source", 3, 1)
    begin, query_of = shard_map.route_keys([1, 2])
    assert begin.tolist() == [0, 2, 4, 6] and query_of.tolist() == [0, 1] * 3


def test_steps_that_cannot_be(pair: Pair, tmp_path: pathlib.Path) -> None:
    everything: tuple[bytes, bytes | None] = (b"", None)
    segment = tmp_path / "segment"
    for call, error, message in (
        (lambda: shards.build(pair.database, SPEC, pair.database, shards=2), cairn.FailedPrecondition, "not a sharded index"),
        (lambda: shards.build(pair.database, SPEC, tmp_path / "o", shards=0), cairn.InvalidArgument, ""),
        (lambda: shards.build(pair.database, SPEC, tmp_path / "o", shards=-1), cairn.InvalidArgument, "shards: expected"),
        (lambda: shards.build(tmp_path / "none", SPEC, tmp_path / "o", shards=2), cairn.NotFound, "none"),
        (lambda: shards.build(pair.database, "value:txt", tmp_path / "o", shards=2), cairn.InvalidArgument, "txt"),
        (lambda: shards.extract_segment(pair.database, (b"a", 7), SPEC, segment), cairn.InvalidArgument, "upper end"),  # type: ignore[arg-type]
        (lambda: shards.extract_segment(pair.database, b"a", SPEC, segment), cairn.InvalidArgument, "pair"),  # type: ignore[arg-type]
        (lambda: shards.split_segments([], 2, tmp_path / "plan"), cairn.InvalidArgument, "expected at least one, got none"),
        (lambda: shards.split_segments([tmp_path / "none"], 2, tmp_path / "plan"), cairn.NotFound, "none"),
        (lambda: shards.shards_of_plan(tmp_path / "plan"), cairn.NotFound, "plan"),
        (lambda: shards.build_shard(tmp_path / "plan", 0, tmp_path / "s"), cairn.NotFound, "plan"),
        (lambda: shards.publish_shards(tmp_path / "plan", tmp_path / "i"), cairn.NotFound, "plan"),
        (lambda: shards.publish_sources([], tmp_path / "i"), cairn.Error, ""),
        (lambda: shards.ShardMap(tmp_path / "plain"), cairn.NotFound, "SHARDS"),
    ):
        with pytest.raises(error, match=message or None):
            call()  # type: ignore[no-untyped-call]
        assert not segment.exists() and not (tmp_path / "plan").exists()
    shards.extract_segment(pair.database, everything, SPEC, segment)
    shards.split_segments([segment], 2, tmp_path / "plan")
    (tmp_path / "i").mkdir()
    shards.build_shard(tmp_path / "plan", 0, tmp_path / "i" / shards.shard_directory_name(0))
    with pytest.raises(cairn.FailedPrecondition, match="shard-1"):
        shards.publish_shards(tmp_path / "plan", tmp_path / "i")
    with pytest.raises(cairn.NotFound):
        cairn.open(tmp_path / "i")


def test_a_map_routes_batches_and_opens_shards(pair: Pair) -> None:
    shard_map = shards.ShardMap(pair.directory)
    assert (shard_map.generation, shard_map.mode, len(shard_map), shard_map.spec) == (1, "key_range", 5, SPEC)
    assert shard_map.key_types == ["u64"] and shard_map.column_family == "default"
    assert [shard["entries"] for shard in shard_map.shards] == [400] * 5
    keys = keys_of(pair)
    begin, query_of = shard_map.route_keys(keys)
    assert begin.dtype == np.uint64 and query_of.dtype == np.uint32 and begin[-1] == len(query_of)
    rows: list[list[int]] = [[] for _ in keys]
    for s in range(5):
        shard = shard_map.open(s, calibration="none")
        assert not shard.in_shards
        queries = query_of[begin[s] : begin[s + 1]]
        found = shard.find(keys[queries])
        for i, query in enumerate(queries):
            rows[query] += [s << 32 | row for row in found[i].tolist()]
    expected = pair.sharded.find(keys)
    assert rows == [expected[i].tolist() for i in range(len(keys))]
    begin, query_of = shard_map.route_ranges(keys, bounds="[]")
    assert begin[-1] >= len(keys)
    with pytest.raises(cairn.KeyTypeError):
        shard_map.route_keys(np.array([1], np.float32))
    with pytest.raises(cairn.OutOfRange):
        shard_map.open(5)


def test_a_missing_or_damaged_shard_is_named(pair: Pair) -> None:
    shard_map = shards.ShardMap(pair.directory)
    name = shard_map.shards[2]["directory"]
    (pair.directory / name).rename(pair.directory.parent / "aside")
    for opened in (lambda: cairn.open(pair.directory), lambda: shard_map.open(2)):
        with pytest.raises(cairn.DataLoss, match=name):
            opened()
    shard_map.open(1).close()
    (pair.directory.parent / "aside").rename(pair.directory / name)
    shards.build(pair.database, SPEC, pair.directory, shards=2)
    with pytest.raises(cairn.FailedPrecondition, match="generation 1"):
        shard_map.open(2)
    assert shards.ShardMap(pair.directory).generation == 2


def test_ctrl_c_ends_a_step(table: Table, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    program = textwrap.dedent(f"""
        import cairn
        try:
            print("ready", flush=True)
            while True:
                cairn.shards.build({str(table.directory)!r}, "value[44:]:text", {str(out)!r}, shards=3)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    with subprocess.Popen([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and output.endswith("interrupted\n")
    assert len(cairn.open(out)) > 0


def test_a_callback_that_raises_ends_a_step(pair: Pair, tmp_path: pathlib.Path) -> None:
    def stop(phase: str, done: int, total: int) -> None:
        raise RuntimeError("no more")

    before = shards.ShardMap(pair.directory).generation
    with pytest.raises(RuntimeError, match="no more"):
        shards.build(pair.database, SPEC, pair.directory, shards=2, progress=stop)
    # The error may be raised after everything is written.
    assert shards.ShardMap(pair.directory).generation in (before, before + 1)
    assert len(cairn.open(pair.directory)) == 2000


def sales(count: int) -> dict[bytes, bytes]:
    """Rows "shop|day|amount"; some lack the last field."""
    rng = random.Random(count)
    rows = {}
    for n in range(count):
        fields = [rng.choice("abc"), str(rng.randrange(9)), str(rng.randrange(-50, 50))]
        rows[b"%05d" % n] = "|".join(fields[: 2 + (rng.random() < 0.9)]).encode()
    return rows


SHOP = "shop = value.field('|',0):text, value.field('|',1):u8, include(amount = value.field('|',2):i32)"
DAY = "day = value.field('|',1):u8"
ASKED: dict[str, Any] = {
    "rows": "count", "keys": "count_distinct", "total": ("sum", "amount"), "mean": ("avg", "amount"),
    "least": ("min", "amount"), "most": ("max", "amount"), "there": ("count", "amount"),
}  # fmt: skip


def check_answers(sharded: list[cairn.Index], plain: list[cairn.Index]) -> None:
    """Aggregates, groups by pages, predicates and joins of indexes of shops and of days."""
    assert sharded[0].aggregate(ASKED).to_list() == plain[0].aggregate(ASKED).to_list()
    shops = ["a", "b", "x"]
    assert sharded[0].aggregate(ASKED, leading=shops).to_list() == plain[0].aggregate(ASKED, leading=shops).to_list()
    for parts in (1, 2):
        found: list[dict[str, Any]] = []
        after = None
        while True:
            page = sharded[0].group_by(parts, ASKED, limit=4, after=after)
            found += pa.table(page).to_pylist()
            after = page.cursors
            if not after[0]:
                break
        assert found == pa.table(plain[0].group_by(parts, ASKED)).to_pylist()
    groups = [cairn.IndexGroup(indexes) for indexes in (sharded, plain)]
    for where in ("day >= 3", "day < 7 AND NOT shop = ('a')", "shop = ('b') OR day = 8"):
        assert groups[0].count(where) == groups[1].count(where) > 0
        for order_by in (None, "day", "shop"):
            pages = []
            for group in groups:
                rows: list[tuple[bytes, int | None]] = []
                cursor = b""
                while True:
                    matches = group.where(where, order_by=order_by, limit=37, after=cursor, columns=["amount"])
                    table = pa.table(matches)
                    rows += zip(table["primary_key"].to_pylist(), table["amount"].to_pylist(), strict=True)
                    assert table["row_id"].to_pylist() == matches.row_ids.tolist()
                    cursor = matches.cursor
                    if not cursor:
                        break
                pages.append(rows)
            assert pages[0] == pages[1]
        assert groups[0].explain(where)
    pairs = [cairn.join(of[1], of[1], primary_keys=True, limit=500) for of in (sharded, plain)]
    assert len(pairs[0]) == len(pairs[1]) == 500
    assert cairn.count_join(sharded[1], plain[1]) == cairn.count_join(plain[1], plain[1])


def test_aggregates_and_predicates_by_key_range(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    database = make_table(sales(600))
    cairn.build(database, {tmp_path / "shop": SHOP, tmp_path / "day": DAY})
    shards.build(database, SHOP, tmp_path / "shops", shards=4)
    shards.build(database, DAY, tmp_path / "days", shards=3)
    plain = [cairn.open(tmp_path / name) for name in ("shop", "day")]
    sharded = [cairn.open(tmp_path / name, calibration="none") for name in ("shops", "days")]
    check_answers(sharded, plain)
    check_answers([sharded[0], plain[1]], plain)
    group = cairn.IndexGroup(sharded)
    assert not group.in_shards and group.where("day = 1").row_ids.dtype == np.uint32


def test_aggregates_and_predicates_by_source(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    rows = list(sales(600).items())
    together = make_table(dict(rows))
    cairn.build(together, {tmp_path / "shop": SHOP, tmp_path / "day": DAY})
    for name in ("shops", "days"):
        (tmp_path / name).mkdir()
    names = ["shard-0.000000000000000a", "shard-1.000000000000000b"]
    for n, name in enumerate(names):
        database = tmp_path / f"source{n}"
        load(database, dict(rows[n::2]))
        cairn.build(database, {tmp_path / "shops" / name: SHOP, tmp_path / "days" / name: DAY})
    for directory in ("shops", "days"):
        shards.publish_sources(names, tmp_path / directory)
    plain = [cairn.open(tmp_path / name) for name in ("shop", "day")]
    sharded = [cairn.open(tmp_path / name, calibration="none") for name in ("shops", "days")]
    check_answers(sharded, plain)
    group = cairn.IndexGroup(sharded)
    found = group.where("day = 1").row_ids
    assert group.in_shards and found.dtype == np.uint64
    assert sharded[1].primary_keys(found).to_list() == group.where("day = 1").primary_keys.to_list()
    with pytest.raises(cairn.FailedPrecondition, match="sources"):
        cairn.IndexGroup([sharded[0], plain[1]])
