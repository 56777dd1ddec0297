"""cairn.ray: aggregates, groups and included columns of a cluster, compared with the same index opened in one
process.
"""

import pathlib
import random
from collections.abc import Callable
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import load
from ray_cluster import local_cluster, opened, ray  # noqa: F401

import cairn.ray

Open = Callable[..., cairn.ray.Cluster]

# Rows as "a|b|n|x|s|t|wide"; the last ones may be missing.
SPEC = (
    "value.field('|',0):u32,value.field('|',1):text,include(n=value.field('|',2):i64,x=value.field('|',3):f64,"
    "s=value.field('|',4):f32,t=value.field('|',5):text,wide=value.field('|',6):i64)"
)
ASKED: dict[str, Any] = {
    "rows": "count",
    "keys": "count_distinct",
    **{f"{f} {c}": (f, c) for f in ("count", "min", "max") for c in ("n", "x", "s", "t", "wide")},
    **{f"{f} {c}": (f, c) for f in ("sum", "avg") for c in ("n", "x", "s")},
    "avg wide": ("avg", "wide"),
}


def rows_of(count: int, seed: int, keys: int = 40, prefix: bytes = b"") -> dict[bytes, bytes]:
    """Rows. One key has many; some values are null, NaN, infinite, -0.0 or extreme."""
    rng = random.Random(seed)
    odd = ["nan", "inf", "-inf", "-0.0", "0", "1e300"]
    rows = {}
    for i in range(count):
        fields = [
            str(rng.choice([7 % keys, rng.randrange(keys), rng.randrange(keys)])), rng.choice(["", "a", "aa", "b"]),
            str(rng.randrange(-1000, 1000)), rng.choice([*odd, str(rng.uniform(-9, 9)), "2.5", "3.25"]), rng.choice([*odd[3:5], "0.5", "7"]),
            rng.choice(["", "x", "yy", "ö"]), str(rng.choice([2**63 - 1, -(2**63), 2**62, rng.randrange(-9, 9)])),
        ]  # fmt: skip
        there = 7 if rng.random() < 0.7 else rng.randrange(2, 8)
        rows[prefix + b"%06d" % i] = "|".join(fields[:there]).encode()
    return rows


def check_aggregates(cluster: cairn.ray.Cluster, whole: cairn.Index, seed: int = 0) -> None:
    rng = random.Random(seed)
    ends = [(rng.randrange(45), rng.choice(["", "a", "b"])) for _ in range(40)]
    batches: list[dict[str, Any]] = [
        {},
        {"lower": ends[:20], "upper": ends[20:], "bounds": rng.choice(["[)", "[]", "(]", "()"])},
        {"keys": [*ends[:9], (7, "a"), (7, "a")]},
        {"leading": [7, 0, 44, 10**6]},
        {"keys": []},
    ]
    for ranges in batches:
        found, expected = cluster.aggregate(ASKED, **ranges), whole.aggregate(ASKED, **ranges)
        assert type(found) is cairn.Column and repr(found.to_list()) == repr(expected.to_list()), ranges
        assert pa.table(found).schema == pa.table(expected).schema
        for parts, limit in ((1, None), (2, 3), (1, 0)):
            page, whole_page = cluster.group_by(parts, ASKED, limit=limit, **ranges), whole.group_by(parts, ASKED, limit=limit, **ranges)
            for _ in range(3):
                assert page.cursors == whole_page.cursors and page.offsets.tolist() == whole_page.offsets.tolist()
                assert repr(pa.table(page).to_pydict()) == repr(pa.table(whole_page).to_pydict())
                assert pa.table(page).schema == pa.table(whole_page).schema
                page = cluster.group_by(parts, ASKED, limit=limit, after=page.cursors, **ranges)
                whole_page = whole.group_by(parts, ASKED, limit=limit, after=whole_page.cursors, **ranges)
    assert cluster.aggregate({}, keys=[(7, "a")]).to_list() == [()]


NAMES = ["n", "x", "s", "t", "wide"]


def check_columns(cluster: cairn.ray.Cluster, whole: cairn.Index) -> None:
    for keys in ([(7, "a"), (3, ""), (99, "b"), (7, "a")], [(99, "b")]):
        found, expected = cluster.find(keys, columns=NAMES, primary_keys=True), pa.table(whole.find(keys, columns=NAMES, primary_keys=True))
        assert repr(pa.table(found).to_pydict()) == repr(expected.to_pydict()) and pa.table(found).schema.types == expected.schema.types
    for order in ("asc", "desc"):
        for limit in (None, 0, 1, 60):
            arguments: dict[str, Any] = {"order": order, "limit": limit, "columns": ["t", "wide"], "with_keys": True}
            table, expected = (pa.table(i.scan((3, ""), (30, ""), **arguments)) for i in (cluster, whole))
            assert repr(table.to_pydict()) == repr(expected.to_pydict()) and table.column_names == expected.column_names


def test_by_key_range(local_cluster: object, opened: Open, tmp_path: pathlib.Path) -> None:  # noqa: F811
    load(tmp_path / "db", rows_of(600, seed=1))
    cairn.ray.build(tmp_path / "db", SPEC, tmp_path / "index", shards=5)
    cluster, whole = opened(tmp_path / "index", replicas=2), cairn.open(tmp_path / "index", calibration="none")
    for seed in range(2):  # for each replica
        check_aggregates(cluster, whole, seed)
        check_columns(cluster, whole)
    # Pages of columns.
    page, pages = cluster.scan(limit=250, columns=["n"], with_keys=True), []
    while True:
        pages.append(pa.table(page))
        if not page.cursors[0]:
            break
        page = cluster.scan(limit=250, columns=["n"], with_keys=True, after=page.cursors)
    assert [len(p) for p in pages] == [250, 250, 100]
    assert pa.concat_tables(pages)["n"].to_pylist() == whole.scan(columns=["n"]).columns["n"].to_list()

    # Sums that fit only in some ranges, whatever the shards' sums are.
    for call in ("aggregate", "group_by"):
        arguments: dict[str, Any] = {"parts": 1} if call == "group_by" else {"leading": [0, 7]}
        with pytest.raises(cairn.OutOfRange) as expected:
            getattr(whole, call)(aggregates={"sum": ("sum", "wide")}, **arguments)
        with pytest.raises(cairn.OutOfRange) as found:
            getattr(cluster, call)(aggregates={"sum": ("sum", "wide")}, **arguments)
        assert str(found.value) == str(expected.value)

    # Invalid queries have the same errors as in one process.
    refused: list[tuple[Callable[[Any], Any], str]] = [
        (lambda i: i.aggregate({"n": "median"}), "found 'median'"),
        (lambda i: i.aggregate(["count"]), "expected a dict of names"),
        (lambda i: i.aggregate({"n": ("sum", "price")}), "no column 'price'; included columns: n, x, s, t, wide"),
        (lambda i: i.aggregate({"n": ("sum", "t")}), "found one of text"),
        (lambda i: i.group_by(3, {}), "1 to 2 leading parts"),
        (lambda i: i.group_by(1, {}, after=[b"?"]), "expected a cursor of the same query"),
        (lambda i: i.group_by(1, {}, after=[b"", b""]), "expected 1 cursors, one per range, found 2"),
        (lambda i: i.find([(7, "a")], columns=["price"]), "no column 'price'"),
    ]
    for ask, message in refused:
        for index in (whole, cluster):
            with pytest.raises(cairn.InvalidArgument, match=message):
                ask(index)
    with pytest.raises(TypeError):
        cluster.scan(columns="n")
    with pytest.raises(cairn.InvalidArgument, match="on_missing"):
        cluster.aggregate(ASKED, on_missing="maybe")  # type: ignore[arg-type]

    # Cursors of groups continue in the next generation, however it is cut.
    first = cluster.group_by(1, {"rows": "count"}, limit=10)
    cairn.ray.build(tmp_path / "db", SPEC, tmp_path / "index", shards=2)
    assert cluster.refresh() == 2
    rest = cluster.group_by(1, {"rows": "count"}, after=first.cursors)
    counts = first.values["rows"].to_list() + rest.values["rows"].to_list()
    assert counts == whole.group_by(1, {"rows": "count"}).values["rows"].to_list()
    assert 'cairn_shard_batches_total{' in cluster.metrics()


def test_few_rows_in_more_shards_and_a_key_in_all(local_cluster: object, opened: Open, tmp_path: pathlib.Path) -> None:  # noqa: F811
    for name, rows in (("few", rows_of(2, seed=2)), ("equal", {b"%d" % i: b"7|a|%d" % i for i in range(30)})):
        load(tmp_path / name, rows)
        cairn.ray.build(tmp_path / name, SPEC, tmp_path / f"{name}.index", shards=5)
        cluster, whole = opened(tmp_path / f"{name}.index"), cairn.open(tmp_path / f"{name}.index", calibration="none")
        check_aggregates(cluster, whole)
        check_columns(cluster, whole)
        cluster.shutdown()
    assert whole.aggregate({"keys": "count_distinct"}).to_list() == [(1,)]


def test_by_source(local_cluster: object, opened: Open, tmp_path: pathlib.Path) -> None:  # noqa: F811
    sources = [tmp_path / f"db{i}" for i in range(3)]
    for i, source in enumerate(sources):
        load(source, rows_of(150, seed=i, keys=12, prefix=b"%d-" % i))
    cairn.ray.build(sources, SPEC, tmp_path / "index")
    cluster = opened(tmp_path / "index")
    check_aggregates(cluster, cairn.open(tmp_path / "index", calibration="none"))
    check_columns(cluster, cairn.open(tmp_path / "index", calibration="none"))
    load(sources[1], {b"1-000003": b"99|new|5", b"1-000004": b"0|a|6", b"later": b"7|a|-7|nan"})
    cluster.catch_up(sources[1], skip_identity_check=True)
    check_aggregates(cluster, cairn.open(tmp_path / "index", calibration="none"), seed=1)


def test_a_missing_shard_is_an_error_or_marked(local_cluster: object, opened: Open, tmp_path: pathlib.Path) -> None:  # noqa: F811
    load(tmp_path / "db", {b"%03d" % i: b"%d|a|1" % i for i in range(40)})
    cairn.ray.build(tmp_path / "db", SPEC, tmp_path / "index", shards=4)
    missing = cairn.shards.ShardMap(tmp_path / "index").shards[3]["directory"]
    (tmp_path / "index" / missing).rename(tmp_path / "aside")
    cluster = opened(tmp_path / "index", on_missing="partial")
    keys = [(5, "a"), (35, "a"), (15, "a")]
    partial = cluster.aggregate({"sum": ("sum", "n")}, keys=keys)
    assert isinstance(partial, cairn.ray.Partial) and list(partial.missing) == [3]
    assert partial.complete.tolist() == [True, False, True] and partial.answer.to_list() == [(1,), (None,), (1,)]
    groups = cluster.group_by(1, {"rows": "count"})
    assert len(groups.answer.values["rows"]) == 30 and not groups.complete.any()
    with pytest.raises(cairn.DataLoss, match=missing):
        cluster.aggregate({"rows": "count"}, on_missing="error")
    assert cluster.aggregate({"rows": "count"}, keys=np.array([]).tolist(), on_missing="error").to_list() == []
