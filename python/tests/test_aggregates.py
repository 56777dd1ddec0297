"""Aggregates compared with SQLite's, over line items like TPC-H's, while rows change."""

import math
import pathlib
import random
import sqlite3
import subprocess
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import load

# Line items as "returnflag|shipdate|suppkey|quantity|price|discount|mode"; the last ones may be missing.
INCLUDE = (
    "include(quantity=value.field('|',3):i32,price=value.field('|',4):f64,"
    "discount=value.field('|',5):f32,mode=value.field('|',6):text)"
)
SPECS = {
    "shipdate": f"value.field('|',1):u32,{INCLUDE}",
    "flag_supplier": f"value.field('|',0):text,value.field('|',2):u16,value.field('|',1):u32,{INCLUDE}",
    "supplier_date": f"value.field('|',2):u16,value.field('|',1):u32,{INCLUDE}",
}
KEYS = {
    "shipdate": ["shipdate"],
    "flag_supplier": ["returnflag", "suppkey", "shipdate"],
    "supplier_date": ["suppkey", "shipdate"],
}
COLUMNS = ["returnflag", "shipdate", "suppkey", "quantity", "price", "discount", "mode"]
AGGREGATES = {
    "entries": ("count", "count(*)"),
    "quantities": (("count", "quantity"), "count(quantity)"),
    "modes": (("count", "mode"), "count(mode)"),
    "sum": (("sum", "quantity"), "sum(quantity)"),
    "mean": (("avg", "quantity"), "avg(quantity)"),
    "least": (("min", "quantity"), "min(quantity)"),
    "most": (("max", "quantity"), "max(quantity)"),
    "turnover": (("sum", "price"), "sum(price)"),
    "price": (("avg", "price"), "avg(price)"),
    "cheapest": (("min", "price"), "min(price)"),
    "dearest": (("max", "price"), "max(price)"),
    "discount": (("max", "discount"), "max(discount)"),
    "first_mode": (("min", "mode"), "min(mode)"),
    "last_mode": (("max", "mode"), "max(mode)"),
}
ASKED = {name: function for name, (function, _) in AGGREGATES.items()}
SELECTED = ", ".join(sql for _, sql in AGGREGATES.values())


class LineItems:
    """The same rows in RocksDB and in SQLite."""

    def __init__(self, root: pathlib.Path, rows: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.database = root / "db"
        self.sql = sqlite3.connect(":memory:")
        self.sql.execute(f"create table items (key text primary key, {', '.join(COLUMNS)})")
        self.keys = [f"item{i:06}" for i in range(rows)]
        self.indexes: dict[str, cairn.Index] = {}
        self.change([key for key in self.keys if self.random.random() < 0.9], 0)

    def row(self) -> list[Any]:
        rng = self.random
        row: list[Any] = [
            rng.choice("ANR"), 8000 + rng.randrange(300), rng.randrange(12), rng.randrange(-5, 51),
            round(rng.uniform(900, 105000), 2), rng.randrange(0, 5) / 4, rng.choice(["AIR", "MAIL", "RAIL", "SHIP", "FOB"]),
        ]  # fmt: skip
        there = 7 if rng.random() < 0.8 else rng.randrange(3, 8)
        return row[:there] + [None] * (7 - there)

    def change(self, put: list[str], deletes: int) -> None:
        rows = {key: self.row() for key in put}
        text = {key: "|".join(str(value) for value in row if value is not None) for key, row in rows.items()}
        load(self.database, {key.encode(): value.encode() for key, value in text.items()})
        self.catch_up()
        marks = ",".join("?" * 8)
        self.sql.executemany(f"insert or replace into items values ({marks})", [(key, *row) for key, row in rows.items()])
        for key in self.random.sample(self.keys, deletes):
            subprocess.run(["ldb", f"--db={self.database}", "delete", key], check=True, capture_output=True)
            self.sql.execute("delete from items where key = ?", (key,))
            self.catch_up()

    def catch_up(self) -> None:
        """Called after each run of ldb, which keeps no log of changes that it flushed when it opened the database."""
        for index in self.indexes.values():
            index.catch_up(self.database, skip_identity_check=True, durable=False)


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and isinstance(expected, int | float):
        return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-6)
    return bool(found == expected)


def check(found: tuple[Any, ...], expected: tuple[Any, ...], where: str) -> None:
    for i, (value, wanted) in enumerate(zip(found, expected, strict=True)):
        assert same(value, wanted), (where, i, value, wanted)


def check_ranges(items: LineItems, index: cairn.Index, queries: int) -> None:
    """Ranges of one part, in one batch, compared with one statement each."""
    rng = items.random
    lower = [7990 + rng.randrange(320) for _ in range(queries)]
    upper = [low + rng.choice([0, 1, 5, 60, 400]) for low in lower]
    values = index.aggregate(
        {**ASKED, "dates": "count_distinct"}, np.array(lower, dtype=np.uint32), np.array(upper, dtype=np.uint32), bounds="[]"
    )
    statement = f"select {SELECTED}, count(distinct shipdate) from items where shipdate between ? and ?"
    for low, high, found in zip(lower, upper, values.to_list(), strict=True):
        check(found, items.sql.execute(statement, (low, high)).fetchone(), f"{low} to {high}")


def check_leading(items: LineItems, index: cairn.Index) -> None:
    keys = [(flag, supplier) for flag in "ANRX" for supplier in range(13)]
    values = index.aggregate(ASKED, leading=keys)
    statement = f"select {SELECTED} from items where returnflag = ? and suppkey = ?"
    for key, found in zip(keys, values.to_list(), strict=True):
        check(found, items.sql.execute(statement, key).fetchone(), str(key))


def check_groups(items: LineItems, index: cairn.Index, name: str, limit: int | None) -> int:
    groups = 0
    for parts in range(1, len(KEYS[name]) + 1):
        columns = ", ".join(KEYS[name][:parts])
        expected = items.sql.execute(f"select {columns}, {SELECTED} from items group by {columns} order by {columns}").fetchall()
        found: list[dict[str, Any]] = []
        after = None
        while True:
            page = index.group_by(parts, ASKED, limit=limit, after=after)
            found += pa.table(page).to_pylist()
            after = page.cursors
            if not after[0]:
                break
        assert len(found) == len(expected)
        for group, wanted in zip(found, expected, strict=True):
            assert group.pop("query") == 0
            check(tuple(group.values()), wanted, f"{name}, {parts} parts")
        groups += len(found)
    return groups


def test_answers_are_those_of_sqlite(tmp_path: pathlib.Path) -> None:
    items = LineItems(tmp_path, 4000, seed=5)
    cairn.build(items.database, {tmp_path / name: spec for name, spec in SPECS.items()})
    items.indexes = {name: cairn.open(tmp_path / name, calibration="none") for name in SPECS}
    indexes = items.indexes
    queries = 0
    for turn in range(7):
        check_ranges(items, indexes["shipdate"], 400)
        check_leading(items, indexes["flag_supplier"])
        queries += 400 + 52
        for name, index in indexes.items():
            queries += check_groups(items, index, name, None if turn % 2 == 0 else 50)
        items.change(items.random.sample(items.keys, 30 * (turn + 1)), 8)
        for index in indexes.values():
            if turn == 4:
                index.compact()
    assert queries > 10000


@pytest.fixture
def index(tmp_path: pathlib.Path) -> cairn.Index:
    rows = {b"a": b"7|-3|0.5|one", b"b": b"7|4|nan|two", b"c": b"8", b"d": b"9|9223372036854775807", b"e": b"9|1"}
    load(tmp_path / "db", rows)
    spec = "value.field('|',0):u32,include(n=value.field('|',1):i64,x=value.field('|',2):f64,t=value.field('|',3):text)"
    cairn.build(tmp_path / "db", {tmp_path / "index": spec})
    return cairn.open(tmp_path / "index", calibration="none")


def test_arrow_takes_what_is_found(index: cairn.Index) -> None:
    values = index.aggregate({"n": ("sum", "n"), "t": ("min", "t"), "rows": "count"}, keys=[7, 8, 1])
    table = pa.table(values)
    assert table.schema.types == [pa.int64(), pa.large_string(), pa.uint64()]
    assert table.to_pydict() == {"n": [1, None, None], "t": ["one", None, None], "rows": [2, 1, 0]}
    # The schema is the same with and without nulls, so that pages can be concatenated.
    pages = [pa.table(index.aggregate({"n": ("sum", "n")}, keys=[key])) for key in (7, 1)]
    assert pa.concat_tables(pages).to_pydict() == {"n": [1, None]}
    groups = index.group_by(1, {"rows": "count"})
    assert len(groups) == 1 and groups.offsets.tolist() == [0, 3] and groups.cursors == [b""]
    assert groups.keys["part1"].to_list() == [7, 8, 9]
    assert pa.table(groups).to_pydict() == {"query": [0, 0, 0], "part1": [7, 8, 9], "rows": [2, 1, 2]}
    assert math.isnan(index.aggregate({"x": ("max", "x")}).to_list()[0][0])
    assert math.isnan(index.aggregate({"x": ("sum", "x")}).to_list()[0][0])
    assert index.aggregate({"x": ("min", "x")}).to_list() == [(0.5,)]
    assert index.aggregate({}, keys=[7]).to_list() == [()]


def test_what_cannot_be_asked_says_why(index: cairn.Index) -> None:
    with pytest.raises(cairn.OutOfRange, match="range 1: the sum of column 'n' is 9223372036854775808"):
        index.aggregate({"n": ("sum", "n")}, keys=[7, 9])
    with pytest.raises(cairn.OutOfRange, match="group 9: the sum"):
        index.group_by(1, {"n": ("sum", "n")})
    for aggregates, message in [
        ({"n": "median"}, "expected one of 'count', .* found 'median'"),
        ({"n": ("sum", "n", "n")}, "expected a function, as 'count'"),
        ({"n": 7}, "expected a function, as 'count'"),
        ({7: "count"}, "expected a name that is a str"),
        (["count"], "expected a dict of names"),
        ({"n": ("sum", "price")}, "includes no column 'price'; included columns: n, x, t"),
        ({"n": ("sum", "t")}, "expected a column of numbers, found one of text"),
    ]:
        with pytest.raises(cairn.InvalidArgument, match=message):
            index.aggregate(aggregates)
    with pytest.raises(cairn.InvalidArgument, match="1 to 1 leading parts"):
        index.group_by(2, {"n": "count"})
    with pytest.raises(cairn.InvalidArgument, match="after: expected a cursor of the same query"):
        index.group_by(1, {"n": "count"}, after=[b"?"])
    assert cairn.open(index.directory, aggregates=["n"]).stats()["aggregates"][0]["column"] == "n"
