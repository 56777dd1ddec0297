"""cairn.shards.ShardMap: combines the aggregates of shards that are queried one by one."""

import pathlib
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from cairn import shards
from conftest import load

SPEC = "value.field('|',0):u32,include(n=value.field('|',1):i64,t=value.field('|',2):text)"
ASKED: dict[str, Any] = {"rows": "count", "keys": "count_distinct", "sum": ("sum", "n"), "last": ("max", "t")}


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    load(tmp_path / "db", {b"%03d" % i: b"%d|%d|t%d" % (i % 7 * (i % 3), i - 50, i % 9) for i in range(100)})
    shards.build(tmp_path / "db", SPEC, tmp_path / "index", shards=4)
    return tmp_path / "index"


@pytest.mark.parametrize(
    ("spec", "keys", "physical"),
    [
        ("key[0:3]:text", ["b", "", "a"], [b"b", b"", b"a"]),
        ("value.field('|',0):u32", [7, 1], [7, 1]),
        ("value.field('|',0):u64", [7, 1], [7, 1]),
        ("value.field('|',1):i32", [1, -1], [2**31 + 1, 2**31 - 1]),
        ("value.field('|',0):u8,value.field('|',1):i32", [(1, 0)], [2**32 + 2**31]),
        ("value.field('|',0):u8,value.field('|',2):text", [(1, "ab"), (2, "")], [b"\1ab", b"\2"]),
    ],
)
def test_physical_keys(tmp_path: pathlib.Path, spec: str, keys: list[Any], physical: list[Any]) -> None:
    load(tmp_path / "db", {b"%03d" % i: b"%d|%d|t%d" % (i, i - 50, i) for i in range(100)})
    shards.build(tmp_path / "db", spec, tmp_path / "index", shards=2)
    shard_map = shards.ShardMap(tmp_path / "index")
    found = shard_map.physical_keys(keys)
    assert found.to_list() == physical == pa.array(found).to_pylist()
    assert found.type == {"u32": "uint32", "u64": "uint64", "bytes": "large_binary"}[cairn.open(tmp_path / "index").kind]
    assert shard_map.physical_keys(keys[:0]).to_list() == []


def test_parts_are_put_together(directory: pathlib.Path) -> None:
    shard_map, whole = shards.ShardMap(directory), cairn.open(directory, calibration="none")
    assert shard_map.included == {"n": "i64", "t": "text"}
    opened = [shard_map.open(s, calibration="none") for s in range(4)]
    lower, upper = np.array([0, 3, 9, 12], np.uint32), np.array([99, 4, 2, 13], np.uint32)
    begin, query_of = shard_map.route_ranges(lower, upper)
    ranges, groups = [], []
    for shard, index in enumerate(opened):
        asked = query_of[int(begin[shard]) : int(begin[shard + 1])]
        ranges.append((asked, shard_map.aggregate_part(index, ASKED, lower[asked], upper[asked])))
        groups.append((asked, shard_map.group_part(index, 1, ASKED, lower[asked], upper[asked], limit=3)))
    assert shard_map.combine_aggregates(4, ASKED, ranges).to_list() == whole.aggregate(ASKED, lower, upper).to_list()
    found, expected = shard_map.combine_groups(4, 1, ASKED, groups, limit=3), whole.group_by(1, ASKED, lower, upper, limit=3)
    assert pa.table(found) == pa.table(expected) and found.cursors == expected.cursors

    for parts, error, message in (
        ([ranges[0][::-1]], cairn.InvalidArgument, "pairs of range numbers and bytes"),
        ([ranges[0][1]], cairn.InvalidArgument, "pairs of range numbers and bytes"),
        ([(ranges[0][0].astype(np.int64), ranges[0][1])], cairn.KeyTypeError, "array of uint32"),
        ([([0], ranges[0][1])], cairn.KeyTypeError, "array of uint32"),
        ([(ranges[0][0], b"")], cairn.InvalidArgument, "part 0: expected a shard's part"),
        ([(ranges[0][0], ranges[0][1][:-1])], cairn.InvalidArgument, "truncated or damaged"),
        ([groups[0]], cairn.InvalidArgument, "part 0: expected a shard's part"),
    ):
        with pytest.raises(error, match=message):
            shard_map.combine_aggregates(4, ASKED, parts)  # type: ignore[arg-type]
    with pytest.raises(cairn.InvalidArgument, match="ShardMap::OpenShard opened"):
        shard_map.aggregate_part(whole, ASKED)
    with pytest.raises(cairn.InvalidArgument, match="no column 'price'; included columns: n, t"):
        shard_map.combine_aggregates(0, {"x": ("sum", "price")}, [])
    opened[0].close()
    with pytest.raises(cairn.Closed):
        shard_map.aggregate_part(opened[0], ASKED)
