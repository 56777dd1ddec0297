"""cairn.ray: indexes that a cluster builds and queries, compared with the same index unsharded."""

import pathlib
import re
import struct
import subprocess
import sys
from collections.abc import Callable

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import Table, load
from ray_cluster import (  # noqa: F401
    KEYS,
    SPEC,
    Database,
    check_points,
    database,
    entries_of,
    local_cluster,
    make_database,
    opened,
    ray,
    rows_of,
)

import cairn.ray
from cairn import shards
from cairn.ray import _common, _host

Open = Callable[..., cairn.ray.Cluster]


def test_a_cluster_builds_what_one_process_builds(database: Database, opened: Open) -> None:
    seen: list[tuple[str, int, int]] = []
    summary = database.build(progress=lambda *step: seen.append(step))
    assert (summary.generation, summary.mode, summary.shards, summary.rows, summary.entries) == (1, "key_range", 5, 2000, 2000)
    assert list(summary.seconds) == ["cut", "extract", "split", "build", "publish"] and ("build", 5, 5) in seen
    assert entries_of(database.in_one_process()) == entries_of(database.plain)
    assert not database.out.with_name("index.work").exists()
    assert len(list(database.out.glob("shard-*"))) == 5
    # The steps in one process create shards with the same bounds.
    shards.build(database.directory, SPEC, database.out.with_name("other"), shards=5)
    bounds = [[s["bounds"] for s in shards.ShardMap(out).shards] for out in (database.out, database.out.with_name("other"))]
    assert bounds[0] == bounds[1]

    cluster = opened(database.out)
    assert (cluster.generation, len(cluster), cluster.spec, cluster.mode, cluster.key_types) == (1, 2000, SPEC, "key_range", ["u64"])
    check_points(cluster, database.plain)
    check_points(cluster, database.plain, KEYS[:1])
    check_points(cluster, database.plain, KEYS[:0])
    assert cluster.find_first([7]).tolist() == database.in_one_process().find_first([7]).tolist()
    assert cluster.count().tolist() == [2000] and cluster.count(5, 100).tolist() == database.plain.count(5, 100).tolist()
    table = pa.table(cluster.find([7, 3], primary_keys=True))
    assert table.column_names == ["query", "row_id", "primary_key"] and table.schema.field("row_id").type == pa.uint64()
    # Another client of the same hosts.
    other = cairn.ray.open(database.out)
    assert other.find_first([7]).tolist() == cluster.find_first([7]).tolist()
    with pytest.raises(cairn.FailedPrecondition, match="is served by 3 hosts"):
        cairn.ray.open(database.out, hosts=2)


def test_scans_over_hosts(database: Database, opened: Open) -> None:
    database.build()
    cluster, whole = opened(database.out), database.in_one_process()
    lower = np.array([0, 7, 7, 8, 100, 0, 9999], np.uint64)
    upper = np.array([7, 8, 2**63, 200, 5000, 2**64 - 1, 3], np.uint64)
    for order in ("asc", "desc"):
        assert cluster.scan(order=order).row_ids.tolist() == whole.scan(order=order).row_ids.tolist()
        for limit in (0, 1, 399, 400, 401, 2000):
            found = cluster.scan(lower, upper, bounds="[]", limit=limit, order=order, with_keys=True, primary_keys=True)
            expected = whole.scan(lower, upper, bounds="[]", limit=limit, order=order, with_keys=True, primary_keys=True)
            assert found.offsets.tolist() == expected.offsets.tolist() and found.row_ids.tolist() == expected.row_ids.tolist()
            assert [bool(c) for c in found.cursors] == [bool(c) for c in expected.cursors]
            assert expected.keys is not None and found.keys is not None and found.primary_keys is not None
            assert found.keys.to_pylist() == expected.keys.to_list() and found.keys.type == pa.uint64()
        rows: list[list[int]] = [[] for _ in lower]
        live, after = np.arange(len(lower)), None
        while len(live):
            page = cluster.scan(lower[live], upper[live], bounds="[]", limit=150, order=order, after=after)
            for i, query in enumerate(live.tolist()):
                rows[query] += page[i].tolist()
            live, after = live[[bool(c) for c in page.cursors]], [c for c in page.cursors if c]
        expected = whole.scan(lower, upper, bounds="[]", order=order)
        assert rows == [expected[i].tolist() for i in range(len(lower))]
    for limit in (400, 401):  # the next page begins with a shard, or inside of one
        after = cluster.scan(limit=limit).cursors
        assert len(cluster.scan(limit=limit, after=after).row_ids) == limit
        for other in ({"order": "desc"}, {"lower": 0}, {"lower": 0, "upper": 2**63}):
            with pytest.raises(cairn.InvalidArgument, match="expected a cursor of the same query"):
                cluster.scan(limit=limit, after=after, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["text", "u8_text", "f64"])
def test_keys_of_every_kind(name: str, table: Table, opened: Open, tmp_path: pathlib.Path) -> None:
    plain = table.open(name)
    cairn.ray.build(table.directory, plain.spec, tmp_path / "index", shards=4)
    cluster = opened(tmp_path / "index")
    column = plain.scan(with_keys=True).keys
    assert column is not None
    keys = column.to_list()[::40]
    forms: list[object] = [keys, keys[0]]
    if name == "text":
        forms += [pa.array(keys), pa.chunked_array([keys[:3], keys[3:]]), pa.array(keys, pa.string_view())]
    elif name == "f64":
        forms += [np.array(keys), pa.array(keys)]
    else:
        parts = [np.array([k[0] for k in keys], np.uint8), pa.array([k[1] for k in keys])]
        forms += [tuple(parts), pa.table({"a": parts[0], "b": parts[1]})]
    for form in forms:
        found, expected = cluster.find(form, primary_keys=True), plain.find(form, primary_keys=True)
        assert expected.primary_keys is not None and found.primary_keys.to_pylist() == expected.primary_keys.to_list()
        assert found.offsets.tolist() == expected.offsets.tolist()
    found = cluster.scan(with_keys=True, limit=3000)
    assert repr(found.keys.to_pylist()) == repr([dict(zip(("part1", "part2"), k, strict=True)) if name == "u8_text" else k for k in column.to_list()])
    if name == "text":
        assert cluster.count(prefix=["Lis", "", "z"]).tolist() == plain.count(prefix=["Lis", "", "z"]).tolist()
    if name == "u8_text":
        assert cluster.count(leading=[0, 255]).tolist() == plain.count(leading=[0, 255]).tolist()
    with pytest.raises(cairn.KeyTypeError):
        cluster.find(np.array([1, 2], np.complex64))


def test_by_source_with_replicas_and_catching_up(opened: Open, local_cluster: object, tmp_path: pathlib.Path) -> None:  # noqa: F811
    for i in range(3):
        load(tmp_path / f"db{i}", rows_of(300, seed=i, prefix=b"%d-" % i))
    sources = [tmp_path / f"db{i}" for i in range(3)]
    summary = cairn.ray.build(sources, SPEC, tmp_path / "index")
    assert (summary.mode, summary.shards, summary.entries) == ("source", 3, 900)
    cluster, whole = opened(tmp_path / "index", replicas=2), cairn.open(tmp_path / "index")
    for _ in range(2):  # for each replica
        check_points(cluster, whole_as_plain(whole))
        for order in ("asc", "desc"):
            for limit in (None, 10, 0):
                found = cluster.scan(5, None, order=order, limit=limit, with_keys=True)
                expected = whole.scan(5, None, order=order, limit=limit, with_keys=True)
                assert found.row_ids.tolist() == expected.row_ids.tolist()
    load(sources[1], {b"later": struct.pack(">Q", 123456)})
    done = cluster.catch_up(sources[1], skip_identity_check=True)
    assert done["changes"] == 1 and done["shard"] == 1
    for _ in range(4):
        assert cluster.count(keys=[123456, 7]).tolist()[0] == 1
    load(tmp_path / "other", rows_of(3))
    with pytest.raises(cairn.FailedPrecondition, match="no shard"):
        cluster.catch_up(tmp_path / "other")
    with pytest.raises(cairn.Unimplemented, match="cursors"):
        cluster.scan(limit=1, after=[b""])


def whole_as_plain(whole: cairn.Index) -> cairn.Index:
    """A sharded index in the form that check_points needs for an unsharded one: its rows are compared by their
    primary keys.
    """

    class Plain:
        def __getattr__(self, name: str) -> object:
            return getattr(whole, name)

        def find_first(self, keys: object) -> object:
            return np.where(whole.find_first(keys) == cairn.NO_GLOBAL_ROW, cairn.NO_ROW, 0)

    return Plain()  # type: ignore[return-value]


def test_a_new_generation_is_taken_up(database: Database, opened: Open) -> None:
    database.build()
    cluster, watching = opened(database.out), None
    first = cluster.find([7], primary_keys=True)
    cursors = cluster.scan(limit=5).cursors
    load(database.directory, {b"99999999": struct.pack(">Q", 7)})
    assert database.build(shards=2).generation == 2
    # The hosts keep their open shards.
    assert cluster.generation == 1 and cluster.find([7], primary_keys=True).primary_keys == first.primary_keys
    assert cluster.refresh() == 2 == cluster.generation
    again = cluster.find([7], primary_keys=True)
    assert again.generation == 2 and again.primary_keys.to_pylist() == [*first.primary_keys.to_pylist(), b"99999999"]
    assert cluster.refresh() == 2
    with pytest.raises(cairn.FailedPrecondition, match="generation 1"):
        cluster.primary_keys(first.row_ids, generation=1)
    with pytest.raises(cairn.FailedPrecondition, match="generation 1"):
        cluster.scan(limit=5, after=cursors)
    # Hosts switch automatically after they have seen it.
    cluster.shutdown()
    watching = opened(database.out, poll=0.1)
    database.build(shards=3)
    for _ in range(200):
        if watching.generation == 3:
            break
        watching.count()
        ray.get(ray.put(0))
        subprocess.run(["sleep", "0.1"], check=True)
    assert watching.generation == 3 and watching.count().tolist() == [2001]


def test_a_missing_or_damaged_shard_is_an_error_or_marked(database: Database, opened: Open) -> None:
    database.build()
    names = [s["directory"] for s in shards.ShardMap(database.out).shards]
    aside = database.out.with_name("aside")
    (database.out / names[2]).rename(aside)
    with pytest.raises(cairn.DataLoss, match=names[2]):
        opened(database.out).count()
    cluster = opened(database.out, on_missing="partial")
    partial = cluster.count(keys=KEYS)
    assert isinstance(partial, cairn.ray.Partial)
    assert list(partial.missing) == [2] and names[2] in partial.missing[2] and 0 < partial.complete.sum() < len(KEYS)
    expected = database.plain.count(keys=KEYS)
    assert (partial.answer[partial.complete] == expected[partial.complete]).all() and (partial.answer <= expected).all()
    with pytest.raises(cairn.DataLoss, match=names[2]):
        cluster.count(keys=KEYS, on_missing="error")
    with pytest.raises(cairn.DataLoss, match=names[2]):
        cluster.scan()
    # The shard is restored: the next check finds it.
    aside.rename(database.out / names[2])
    cluster.refresh()
    assert cluster.count(keys=KEYS, on_missing="error").tolist() == expected.tolist()
    assert cluster.count(keys=KEYS).complete.all()
    # Hosts do not switch to a damaged generation.
    database.build(shards=2)
    damaged = max((database.out / shards.ShardMap(database.out).shards[1]["directory"]).iterdir(), key=lambda p: p.stat().st_size)
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    strict = cairn.ray.open(database.out, on_missing="partial")
    strict._serving._needs_all = True
    with pytest.raises(cairn.DataLoss, match=damaged.parent.name):
        strict.refresh()
    assert cluster.generation == 1 and cluster.count(keys=KEYS, on_missing="error").tolist() == expected.tolist()


def test_another_version_is_refused_by_name(database: Database, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    database.build()
    cluster = opened(database.out)
    monkeypatch.setattr(_common, "VERSION", "9.9.9")
    for call in (database.build, lambda: cairn.ray.open(database.out), cluster.refresh, cluster.count):
        with pytest.raises(cairn.FailedPrecondition, match=f"{re.escape(cairn.__version__)}.*9.9.9") as raised:
            call()
        assert "host" in str(raised.value)
    monkeypatch.undo()
    assert cluster.generation == 1 and database.in_one_process().stats()["version"] == 1


def test_what_cannot_be_built_or_opened(database: Database, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "none"
    for call, error, message in (
        (lambda: cairn.ray.build([], SPEC, out), cairn.InvalidArgument, "at least one"),
        (lambda: cairn.ray.build(database.directory, "value:txt", out), cairn.InvalidArgument, "txt"),
        (lambda: cairn.ray.build(tmp_path / "no", SPEC, out), cairn.NotFound, "no"),
        (lambda: cairn.ray.build([database.directory] * 2, SPEC, out), cairn.FailedPrecondition, ""),
        (lambda: cairn.ray.build([database.directory] * 2, SPEC, out, shards=3), cairn.InvalidArgument, "several sources"),
        (lambda: cairn.ray.build(database.directory, SPEC, out, threads=0), cairn.InvalidArgument, "threads"),
        (lambda: cairn.ray.build(database.directory, SPEC + ",unique=true", out), cairn.AlreadyExists, "unique"),
        (lambda: cairn.ray.build(database.directory, SPEC, database.directory), cairn.FailedPrecondition, "not a sharded index"),
        (lambda: cairn.ray.open(tmp_path / "no"), cairn.NotFound, "no"),
        (lambda: cairn.ray.open(tmp_path / "plain"), cairn.NotFound, "SHARDS"),
    ):
        with pytest.raises(error, match=message or None):
            call()
        assert not (out / "SHARDS").exists() and not out.with_name("none.work").exists()
    database.build()
    for options in ({"hosts": 0}, {"replicas": 0}, {"hosts": 2, "replicas": 3}, {"on_missing": "ignore"}):
        with pytest.raises(cairn.InvalidArgument):
            cairn.ray.open(database.out, **options)  # type: ignore[arg-type]


def test_calls_that_cannot_be(database: Database, opened: Open) -> None:
    database.build()
    cluster = opened(database.out, hosts=1)
    for call, error in (
        (lambda: cluster.find("a"), cairn.KeyTypeError),
        (lambda: cluster.scan(order="up"), cairn.InvalidArgument),
        (lambda: cluster.scan(limit=-1), cairn.InvalidArgument),
        (lambda: cluster.scan(limit=1, after=[b"x"]), cairn.InvalidArgument),
        (lambda: cluster.scan(limit=1, after=[b"", b""]), cairn.InvalidArgument),
        (lambda: cluster.count([1], [2, 3]), cairn.InvalidArgument),
        (lambda: cluster.count(bounds="<>", lower=1), cairn.InvalidArgument),
        (lambda: cluster.count(on_missing="maybe"), cairn.InvalidArgument),  # type: ignore[arg-type]
        (lambda: cluster.primary_keys(np.array([9 << 32], np.uint64)), cairn.OutOfRange),
        (lambda: cluster.primary_keys(np.array([399 + (4 << 32) + 1], np.uint64)), cairn.OutOfRange),
        (lambda: cluster.primary_keys(np.array([1], np.uint32)), cairn.KeyTypeError),  # type: ignore[arg-type]
        (lambda: cluster.catch_up(database.directory), cairn.FailedPrecondition),
    ):
        with pytest.raises(error):
            call()
    assert cluster.count().tolist() == [2000]


def test_metrics(database: Database, opened: Open) -> None:
    database.build()
    cluster = opened(database.out)
    cluster.find_first(KEYS)
    cluster.count()
    text = cluster.metrics()
    samples = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            samples[name] = float(value)
    totals = {
        name: sum(v for k, v in samples.items() if k.startswith(f"cairn_shard_{name}{{"))
        for name in ("up", "entries", "batches_total", "queries_total", "seconds_total", "failures_total", "generation")
    }
    assert totals["up"] == 5 and totals["entries"] == 2000 and totals["failures_total"] == 0 and totals["generation"] == 5
    assert totals["batches_total"] == 10 and totals["queries_total"] >= len(KEYS) + 5 and totals["seconds_total"] > 0
    assert samples[f'cairn_host_up{{index="{database.out}",host="2"}}'] == 1
    assert samples[f'cairn_client_batches_total{{index="{database.out}"}}'] == 2
    assert all(re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [0-9.e+-]+', line) for line in text.splitlines())


def test_without_ray_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['ray'] = None; import cairn\ntry:\n  import cairn.ray\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True)
    assert "cairn-rocksdb[ray]" in done.stdout and "'ray'" in done.stdout


def test_a_hosts_shards_go_to_its_devices_in_turn(database: Database) -> None:
    database.build()
    layout = _host.Layout(2, 1)
    mine = [shard for shard in range(5) if 0 in layout.hosts_of(shard, 5)]
    assert len(mine) > 1
    # One of two devices does not exist, and is rejected by name.
    host = _host.Host(str(database.out), 0, layout, 0, {"device": "auto", "devices": [0, -1], "calibration": "none"})
    assert sorted(host.describe()["failures"]) == mine[1::2]
    assert all("found -1" in text for text in host.describe()["failures"].values())
