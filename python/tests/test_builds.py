"""Builds, catching up, merging, fetching, and their errors."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping

import cairn
import numpy as np
import pytest
from conftest import Table, load

MakeTable = Callable[[Mapping[bytes, bytes]], pathlib.Path]


def rows_of(numbers: range) -> dict[bytes, bytes]:
    return {f"{n:08}".encode(): (n % 100).to_bytes(8, "big") + b"row %d" % n for n in numbers}


def test_build_says_what_it_did(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    database = make_table(rows_of(range(500)) | {b"x": b"short"})
    seen: list[tuple[str, int, int]] = []
    reports = cairn.build(
        database,
        {tmp_path / "n": "value[0:8]:u64be,on_error=skip", str(tmp_path / "t"): "value[8:]:text"},
        progress=lambda phase, done, total: seen.append((phase, done, total)),
        threads=2,
        memory_budget=1 << 20,
    )
    assert list(reports) == [str(tmp_path / "n"), str(tmp_path / "t")]
    report = reports[str(tmp_path / "n")]
    assert (report.rows, report.entries, report.rows_skipped) == (501, 500, 1)
    assert "x" in report.first_skipped
    assert reports[str(tmp_path / "t")].rows_without_key == 1
    assert seen and {phase for phase, _, _ in seen} <= {"scan", "sort", "write"}
    with cairn.open(tmp_path / "n") as index:
        assert index.count(keys=[7]).tolist() == [5]
        assert index.spec == "value[0:8]:u64be,on_error=skip" and index.column_family == "default"
    with cairn.Snapshot(database) as snapshot:
        assert snapshot.column_family == "default" and snapshot.sequence == 501 and snapshot.database_id
        cairn.build(snapshot, [(tmp_path / "again", "value[8:]:text")], progress=True)
    with pytest.raises(cairn.Closed):
        cairn.build(snapshot, {tmp_path / "again": "value[8:]:text"})


def test_stored_leaves_are_searched_where_they_lie(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    database = make_table(rows_of(range(500)))
    for leaves in (False, True):
        cairn.build(database, {tmp_path / "n": "value[0:8]:u64be"}, prebuild_search_structure=leaves)
        with cairn.open(tmp_path / "n", ordered_indexes=["cpu:packed"], verify="metadata") as index:
            assert index.count(keys=[7]).tolist() == [5]
            assert (index.stats()["ordered_indexes"][0]["mapped_bytes"] > 0) == leaves


def test_builds_that_cannot_be(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    database = make_table(rows_of(range(200)))
    out = tmp_path / "out"
    for source, specs, error, message in (
        (tmp_path / "nothing", {out: "value:text"}, cairn.NotFound, "nothing"),
        (database, {out: "value:txt"}, cairn.InvalidArgument, "txt"),
        (database, {}, cairn.InvalidArgument, "at least one"),
        (database, {out: "value:text,cf=other"}, cairn.NotFound, "other"),
        (database, {out: "value[0:8]:u64be,unique=true"}, cairn.AlreadyExists, "unique"),
        (database, {out: "value[0:100]:bytes"}, cairn.InvalidArgument, "expected 100 bytes"),
        ([tmp_path / "no.sst"], {out: "value:text"}, cairn.Error, "no.sst"),
        (database, {out: "value:text", tmp_path / "b": "value:text,cf=other"}, cairn.Error, "other"),
    ):
        with pytest.raises(error, match=message):
            cairn.build(source, specs)  # type: ignore[arg-type]
        assert not out.exists() or list(out.iterdir()) == []
    with pytest.raises(TypeError):
        cairn.build(7, {out: "value:text"})  # type: ignore[arg-type]


def test_a_callback_that_raises_ends_the_build(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    database = make_table(rows_of(range(200)))

    def fail(phase: str, done: int, total: int) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        cairn.build(database, {tmp_path / "out": "value[8:]:text"}, progress=fail)


def test_ctrl_c_ends_a_build_and_leaves_nothing(table: Table, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    program = textwrap.dedent(f"""
        import cairn
        try:
            print("ready", flush=True)
            while True:
                cairn.build({str(table.directory)!r}, {{{str(out)!r}: "value[44:]:text"}})
                import shutil; shutil.rmtree({str(out)!r})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    with subprocess.Popen([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and output.endswith("interrupted\n")
    assert not out.exists() or [p for p in out.rglob("*") if "tmp" in p.name] == []


def test_catching_up_merging_and_fetching(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    database = make_table(rows_of(range(300)))
    cairn.build(database, {tmp_path / "n": "value[0:8]:u64be"})
    index = cairn.open(tmp_path / "n")
    before = index.sequence
    load(database, rows_of(range(300, 400)))
    # ldb keeps no log of flushed changes, which would prove that the database continues from there.
    with pytest.raises(cairn.FailedPrecondition, match="nothing proves"):
        index.catch_up(database)
    report = index.catch_up(database, skip_identity_check=True)
    assert (report.changes, report.rows) == (100, 100)
    assert index.sequence == report.sequence == before + 100
    found = index.find([7], primary_keys=True)
    assert found.primary_keys is not None
    assert found.primary_keys.to_list() == [b"00000007", b"00000107", b"00000207", b"00000307"]
    assert index.stats()["delta"]["new_rows"] == 100
    version = index.stats()["version"]
    index.compact(progress=lambda *_: None)
    assert index.stats()["delta"]["new_rows"] == 0 and index.stats()["version"] > version
    assert isinstance(index.should_compact(), bool) and index.verify(database) == []

    fetched = index.fetch(database, [7, 1000])
    assert len(fetched) == 2 and fetched.stale == 0 and fetched.values is not None
    assert [value[8:] for value in fetched.values.to_list()] == [b"row 7", b"row 107", b"row 207", b"row 307"]
    page = index.fetch(database, lower=7, upper=9, limit=3)
    assert page.primary_keys is not None and len(page.primary_keys) == 3 and page.cursors[0]
    rest = index.fetch(database, lower=7, upper=9, limit=10, after=page.cursors)
    assert rest.primary_keys is not None and len(rest.primary_keys) == 5
    load(database, {b"00000007": (50).to_bytes(8, "big")})
    stale = index.fetch(database, [7])
    assert stale.stale == 1 and len(stale.row_ids) == 3
    assert len(index.verify(database)) == 2 and len(index.verify(database, max_differences=1)) == 1

    other = tmp_path / "other"
    load(other, rows_of(range(10)))
    with pytest.raises(cairn.FailedPrecondition):
        index.catch_up(other)
    with pytest.raises(cairn.FailedPrecondition):
        index.fetch(other, [7])


def test_opening(table: Table, tmp_path: pathlib.Path) -> None:
    with pytest.raises(cairn.NotFound) as raised:
        cairn.open(tmp_path)
    assert isinstance(raised.value, FileNotFoundError)
    with pytest.raises(cairn.InvalidArgument, match="'cpu', 'gpu', 'auto'"):
        table.open("u64", device="tpu")
    with pytest.raises(cairn.InvalidArgument):
        table.open("u64", ordered_indexes=["cpu:nothing"])
    index = table.open("u64", ordered_indexes=["cpu:fast", "cpu:packed"], calibration="none", verify="metadata", threads=1)
    assert [o["description"].split(",")[0] for o in index.stats()["ordered_indexes"]] == ["cpu:fast", "cpu:packed"]
    auto = table.open("u64", device="auto")
    if auto.stats()["fallback"]:
        with pytest.raises(cairn.Unavailable):
            table.open("u64", device="gpu")
    for devices, message in (([0, -1], "found -1"), ([0] * 65, "at most 64, found 65")):
        with pytest.raises(cairn.InvalidArgument, match=message):
            table.open("u64", device="auto", devices=devices)
    with pytest.raises(cairn.InvalidArgument, match="no ordered index is for a GPU"):
        table.open("u64", devices=[0])
    with pytest.raises(cairn.Unavailable):
        table.open("u64", device="gpu", devices=[0, 1000])
    elsewhere = table.open("u64", device="auto", devices=[0, 1000], calibration="none")
    assert elsewhere.stats()["fallback"]
    assert elsewhere.explain("count").index == elsewhere.stats()["ordered_indexes"][0]["description"]
    assert os.fspath(index.directory) in repr(index)


def test_damage_is_data_loss(make_table: MakeTable, tmp_path: pathlib.Path) -> None:
    cairn.build(make_table(rows_of(range(300))), {tmp_path / "n": "value[0:8]:u64be"})
    largest = max((p for p in (tmp_path / "n").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 1
    largest.write_bytes(data)
    with pytest.raises(cairn.DataLoss, match=largest.name):
        cairn.open(tmp_path / "n").find(np.zeros(1, np.uint64))


def test_comparators_are_declared_once() -> None:
    cairn.declare_comparator("test.DeclaredInPython", reverse=True)
    cairn.declare_comparator("test.DeclaredInPython", True)
    with pytest.raises(cairn.AlreadyExists, match="test.DeclaredInPython"):
        cairn.declare_comparator("test.DeclaredInPython")
    with pytest.raises(cairn.InvalidArgument):
        cairn.declare_comparator("")
