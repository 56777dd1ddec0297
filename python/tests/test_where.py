"""Predicates over several indexes, compared with SQLite: thousands of random queries, with updates and deletes
in between.
"""

import os
import pathlib
import random
import sqlite3
import subprocess
from collections.abc import Iterator

import cairn
import pyarrow as pa
import pytest
from conftest import load

QUERIES = int(os.environ.get("CAIRN_WHERE_QUERIES", "400"))  # per round
ROUNDS = 6
CITIES = ["", "Lis", "Lisbon", "Oslo", "Porto", "O'Porto", "x"]
SPECS = {
    "age": "age = value.field('|',0):i32, include(score = value.field('|',3):u32)",
    "city": "city = value.field('|',1):text, nulls=first",
    "status": "status = value.field('|',2):text, nulls=last",
    "score": "score = value.field('|',3):u32, nulls=first",
}
Row = tuple[int, str | None, str | None, int | None]


class World:
    """A RocksDB with its indexes, and a SQLite with the same rows."""

    def __init__(self, directory: pathlib.Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.directory = directory
        self.database = directory / "db"
        self.sql = sqlite3.connect(":memory:")
        self.sql.execute("CREATE TABLE t (pk BLOB PRIMARY KEY, age INT, city TEXT, status TEXT, score INT)")
        self.sql.execute("PRAGMA case_sensitive_like = ON")
        self.put(1500)
        cairn.build(self.database, {directory / name: spec for name, spec in SPECS.items()})
        self.indexes = [cairn.open(directory / name) for name in SPECS]

    def row(self) -> Row:
        there = self.random.randrange(1, 5)
        values = (
            self.random.randrange(-5, 40),
            self.random.choice(CITIES),
            self.random.choice(["open", "shut", "closed"]),
            self.random.randrange(100),
        )
        return tuple(v if i < there else None for i, v in enumerate(values))  # type: ignore[return-value]

    def put(self, count: int) -> None:
        rows = {b"k%05d" % self.random.randrange(3000): self.row() for _ in range(count)}
        load(self.database, {k: "|".join(str(v) for v in row if v is not None).encode() for k, row in rows.items()})
        self.sql.executemany("INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?, ?)", [(k, *row) for k, row in rows.items()])

    def delete(self) -> None:
        begin = self.random.randrange(3000)
        ends = [b"k%05d" % begin, b"k%05d" % (begin + self.random.randrange(150))]
        subprocess.run(
            ["ldb", f"--db={self.database}", "--hex", "deleterange", *(f"0x{end.hex()}" for end in ends)],
            check=True, capture_output=True,
        )  # fmt: skip
        self.sql.execute("DELETE FROM t WHERE pk >= ? AND pk < ?", ends)

    def catch_up(self) -> None:
        for index in self.indexes:  # with the changes of one run of ldb, since the next one removes its log
            index.catch_up(self.database, skip_identity_check=True)

    def literal(self, column: str) -> str:
        if self.random.randrange(40) == 0:
            return "NULL"
        if column == "city":
            return "'" + self.random.choice(CITIES).replace("'", "''") + "'"
        if column == "status":
            return "'" + self.random.choice(["open", "shut", "closed", "none"]) + "'"
        return str(self.random.randrange(-7, 45) if column == "age" else self.random.randrange(110))

    def comparison(self) -> str:
        column = self.random.choice(["age", "city", "status", "score"])
        value = self.literal
        kind = self.random.randrange(7)
        negated = self.random.choice(["", "", "NOT "])
        if kind <= 1:
            return f"{column} {self.random.choice(['=', '<>', '<', '<=', '>', '>='])} {value(column)}"
        if kind == 2:
            return f"{column} {negated}IN ({', '.join(value(column) for _ in range(self.random.randrange(1, 4)))})"
        if kind <= 4:
            return f"{column} {negated}BETWEEN {value(column)} AND {value(column)}"
        if kind == 5 and column != "age":  # an index with nulls=skip matches only values that are not null
            return f"{column} IS {negated}NULL"
        if column in ("city", "status"):
            return f"{column} {negated}LIKE '{self.random.choice(['Lis', 'O', 'o', 'P', ''])}%'"
        return "age IS NOT NULL"

    def predicate(self, depth: int) -> str:
        kind = self.random.randrange(5) if depth else 0
        if kind <= 1:
            return self.comparison()
        if kind == 2:
            return f"NOT ({self.predicate(depth - 1)})"
        joint = " AND " if kind == 3 else " OR "
        return joint.join(f"({self.predicate(depth - 1)})" for _ in range(self.random.randrange(2, 4)))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("where"), seed=20261124)


def nulls(world: World, column: str, descending: bool) -> str:
    """The order of NULLs: an index's order has them as its policy defines; age keeps none, so they come last."""
    first = {"age": False, "city": not descending, "score": not descending, "status": descending}[column]
    return "NULLS FIRST" if first else "NULLS LAST"


def check(world: World, group: cairn.IndexGroup, text: str) -> None:
    expected = [pk for (pk,) in world.sql.execute(f"SELECT pk FROM t WHERE {text} ORDER BY pk")]
    strategy = world.random.choice(["auto", "auto", "gather", "bitmap", "scan"])
    try:
        found = group.where(text, strategy=strategy)
    except cairn.InvalidArgument as error:
        # Queries that this index cannot answer, and rows with several numbers.
        assert ("nulls=skip" in str(error) and "age IS NOT NULL" in text) or strategy == "scan"
        return
    assert found.primary_keys.to_list() == expected, (text, strategy, found.plan)
    assert group.count(text, strategy=strategy) == len(expected), (text, strategy)
    column = world.random.choice(list(SPECS))
    descending = world.random.random() < 0.5
    way = "DESC" if descending else "ASC"
    limit = world.random.choice([1, 3, 20, 200])
    # Rows without a key, which age does not keep, are in ascending order of primary keys in both directions.
    ties = f"CASE WHEN {column} IS NULL AND '{column}' = 'age' THEN pk END ASC, pk {way}"
    ordered = [
        pk
        for (pk,) in world.sql.execute(
            f"SELECT pk FROM t WHERE {text} ORDER BY {column} {way} {nulls(world, column, descending)}, {ties} LIMIT {limit * 2}"
        )
    ]
    pages: list[bytes] = []
    after = b""
    strategy = world.random.choice(["auto", "walk", "gather"])
    for _ in range(2):
        page = group.where(text, order_by=column, descending=descending, limit=limit, after=after, strategy=strategy)
        pages += page.primary_keys.to_list()
        after = page.cursor
        if not after:
            break
    assert pages == ordered, (text, column, descending, limit, strategy)


def test_random_queries_as_sqlite_answers_them(world: World) -> None:
    for round_ in range(ROUNDS):
        group = cairn.IndexGroup(world.indexes)
        for _ in range(QUERIES):
            check(world, group, world.predicate(world.random.randrange(4)))
        world.put(120)
        world.catch_up()
        world.delete()
        world.catch_up()
        if round_ % 2 == 1:
            world.indexes[round_ % len(world.indexes)].compact()


def test_arrow_and_columns(world: World) -> None:
    group = cairn.IndexGroup(world.indexes)
    found = group.where("age >= 10 AND status = 'open'", columns=["score"], order_by="age", limit=50)
    table = pa.table(found)
    assert table.column_names == ["row_id", "primary_key", "score"]
    for pk, score in zip(table["primary_key"].to_pylist(), table["score"].to_pylist(), strict=True):
        assert world.sql.execute("SELECT score FROM t WHERE pk = ?", [pk]).fetchone() == (score,)
    assert "strategy" in found.plan and "age" in group.explain("age = 3 AND city = 'Oslo'")


def test_names_and_errors(world: World) -> None:
    named = cairn.IndexGroup({"years": world.indexes[0], "town": world.indexes[1]})
    assert named.names == ["years", "town"]
    assert named.count("years = 3 OR town IS NULL") > 0
    group = cairn.IndexGroup(world.indexes)
    for text, message in [
        ("age ~ 3", "at offset 4"),
        ("town = 'x'", "has no index 'town'"),
        ("age = 'x'", "part 1"),
        ("age IS NULL", "does not keep rows without a key"),
    ]:
        with pytest.raises(cairn.InvalidArgument, match=message):
            group.count(text)
    with pytest.raises(cairn.InvalidArgument, match="strategy: expected one of 'auto'"):
        group.count("age = 3", strategy="fast")
    with pytest.raises(cairn.InvalidArgument):
        cairn.IndexGroup([])


def pages_of(group: cairn.IndexGroup, text: str) -> Iterator[bytes]:
    after = b""
    while True:
        page = group.where(text, limit=7, after=after)
        yield from page.primary_keys.to_list()
        after = page.cursor
        if not after:
            return


def test_pages_by_primary_key(world: World) -> None:
    group = cairn.IndexGroup(world.indexes)
    text = "city = 'Lisbon' OR score < 20"
    assert list(pages_of(group, text)) == group.where(text).primary_keys.to_list()


def test_groups_of_rows(world: World) -> None:
    group = cairn.IndexGroup(world.indexes)
    asked = {"rows": "count", "total": ("sum", "score"), "cities": ("count_distinct", "city")}
    groups = group.aggregate(asked, "age >= 10", group_by=["status"], order_by=["total desc"], limit=2)
    expected = world.sql.execute(
        "SELECT status, count(*), sum(score), count(DISTINCT city) FROM t WHERE age >= 10 GROUP BY status ORDER BY 3 DESC, 1 LIMIT 2"
    ).fetchall()
    table = pa.table(groups)
    assert table.column_names == ["status", "rows", "total", "cities"]
    assert [tuple(row.values()) for row in table.to_pylist()] == expected
    assert len(groups) == 2 and groups.cursor and "strategy" in groups.plan
    assert groups.keys["status"].to_list() == [row[0] for row in expected]
    assert groups.values["total"].to_list() == [row[2] for row in expected]
    assert groups.rows == group.count("age >= 10") and str(groups.rows) in repr(groups)
    whole = group.aggregate({"rows": "count"})
    assert pa.table(whole).to_pylist() == [{"rows": world.sql.execute("SELECT count(*) FROM t").fetchone()[0]}]
    for arguments, message in [
        ({"group_by": ["town"]}, "column 'town'"),
        ({"order_by": ["score"]}, "no column 'score' to order by; expected one of rows"),
        ({"limit": -1}, "limit: expected an integer from 0"),
        ({"after": b"x"}, "expected a cursor of the same query"),
    ]:
        with pytest.raises(cairn.InvalidArgument, match=message):
            group.aggregate({"rows": "count"}, **arguments)  # type: ignore[arg-type]
    with pytest.raises(cairn.InvalidArgument, match="expected a column of numbers"):
        group.aggregate({"total": ("sum", "city")})
    with pytest.raises(cairn.InvalidArgument, match="expected a dict of names"):
        group.aggregate(["count"])  # type: ignore[arg-type]
