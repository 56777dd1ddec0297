"""The same rows in a RocksDB with indexes and in SQLite: small versions of TPC-H and of the Star Schema Benchmark."""

import json
import pathlib
import random
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cairn
from conftest import load

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
MODES = ["AIR", "FOB", "MAIL", "O'NEIL", "RAIL", "REG AIR", "SHIP", ""]


@dataclass
class Column:
    """A column of a table and, if it has an index, the null policy of that index."""

    kind: str
    draw: Callable[[random.Random], Any]
    nulls: str | None = "skip"  # of its index; None: it has no index
    null_share: float = 0
    include: Sequence[str] = ()  # in its index


@dataclass
class Table:
    name: str
    columns: dict[str, Column]
    keys: int  # the number of primary keys
    is_json: bool
    composites: dict[str, Sequence[str]] = field(default_factory=dict)


def of(low: int, high: int) -> Callable[[random.Random], int]:
    return lambda rng: rng.randrange(low, high)


def one(values: Sequence[Any]) -> Callable[[random.Random], Any]:
    return lambda rng: rng.choice(values)


LINEITEM = Table(
    "lineitem",
    {
        "orderkey": Column("u32", of(0, 400), include=["quantity", "extendedprice"]),
        "partkey": Column("i64", of(-60, 60), nulls="first", null_share=0.1),
        "quantity": Column("i32", of(-5, 51), nulls="last", null_share=0.1),
        "shipmode": Column("text", one(MODES), nulls="last", null_share=0.1, include=["comment"]),
        "returnflag": Column("text", one(["A", "N", "R"]), nulls="skip", null_share=0.2),
        "shipdate": Column("u16", of(8000, 8300), include=["quantity", "extendedprice", "discount", "shipmode", "linenumber"]),
        "discount": Column("f32", lambda rng: rng.randrange(-2, 9) / 8, nulls="first"),
        "extendedprice": Column("f64", lambda rng: rng.randrange(-4000, 400000) / 4, nulls=None, null_share=0.1),
        "linenumber": Column("u8", of(1, 8), nulls=None),
        "comment": Column("bytes", one(["", "carefully", "careful", "final deposits", "zzz"]), nulls=None, null_share=0.2),
    },
    keys=3000,
    is_json=True,
    composites={"mode_date": ["shipmode", "shipdate"]},
)  # fmt: skip
ORDERS = Table(
    "orders",
    {
        "orderkey": Column("u32", of(0, 500), nulls="skip", include=["totalprice", "priority"]),
        "custkey": Column("i32", of(0, 90), nulls="first", null_share=0.2),
        "totalprice": Column("i64", of(-(10**15), 10**15), nulls=None),
        "priority": Column("text", one(["1-URGENT", "2-HIGH", "3-LOW"]), nulls=None),
    },
    keys=600,
    is_json=True,
)  # fmt: skip
LINEORDER = Table(
    "lineorder",
    {
        "year": Column("u16", of(1992, 1999), include=["revenue", "supplycost", "discount", "brand", "c_nation"]),
        "quantity": Column("u8", of(1, 51)),
        "discount": Column("u8", of(0, 11)),
        "revenue": Column("u32", of(0, 2**32), nulls=None),
        "supplycost": Column("u32", of(0, 100_000), nulls=None),
        "category": Column("text", lambda rng: f"MFGR#{rng.randrange(1, 6)}{rng.randrange(1, 6)}"),
        "brand": Column("text", lambda rng: f"MFGR#{rng.randrange(1, 6)}{rng.randrange(1, 6)}{rng.randrange(1, 41)}"),
        "s_region": Column("text", one(REGIONS)),
        "c_nation": Column("text", one(["CHINA", "INDIA", "JAPAN", "BRAZIL", "PERU", "KENYA", "FRANCE"]), include=["year"]),
    },
    keys=5000,
    is_json=False,
    composites={"region_year": ["s_region", "year"]},
)  # fmt: skip


class World:
    """A table, its indexes, and SQLite."""

    def __init__(self, table: Table, root: pathlib.Path, sql: sqlite3.Connection, rng: random.Random) -> None:
        self.table, self.root, self.sql, self.random = table, root / table.name, sql, rng
        self.root.mkdir()
        self.database = self.root / "db"
        sql.execute("PRAGMA case_sensitive_like = ON")
        sql.execute(f"CREATE TABLE {table.name} (pk BLOB PRIMARY KEY, {', '.join(map(self.declared, table.columns))})")
        self.indexed = [name for name, column in table.columns.items() if column.nulls is not None]
        self.numbers = [name for name, column in table.columns.items() if column.kind not in ("text", "bytes")]
        self.put(table.keys * 2 // 3)
        specs = {name: self.spec(name, [name], table.columns[name].nulls or "") for name in self.indexed}
        specs |= {name: self.spec(name, parts, "skip") for name, parts in table.composites.items()}
        cairn.build(self.database, {self.root / name: spec for name, spec in specs.items()})
        self.indexes = {name: cairn.open(self.root / name, calibration="none") for name in specs}

    def declared(self, name: str) -> str:
        kind = self.table.columns[name].kind
        return f"{name} {'TEXT' if kind in ('text', 'bytes') else 'REAL' if kind[0] == 'f' else 'INTEGER'}"

    def source(self, name: str) -> str:
        columns = self.table.columns
        where = f"json('/{name}')" if self.table.is_json else f"field('|',{list(columns).index(name)})"
        return f"value.{where}:{columns[name].kind}"

    def spec(self, name: str, parts: Sequence[str], nulls: str) -> str:
        column = self.table.columns.get(name)
        include = ", ".join(f"{other} = {self.source(other)}" for other in (column.include if column else self.numbers))
        spec = f"{name} = {', '.join(map(self.source, parts))}, nulls={nulls}"
        return f"{spec}, include({include})" if include else spec

    def row(self) -> list[Any]:
        return [
            None if self.random.random() < column.null_share else column.draw(self.random)
            for column in self.table.columns.values()
        ]

    def value(self, row: list[Any]) -> bytes:
        if not self.table.is_json:
            return "|".join(map(str, row)).encode()
        there = {name: value for name, value in zip(self.table.columns, row, strict=True) if value is not None}
        return json.dumps(there).encode()

    def put(self, count: int) -> None:
        rows = {b"k%05d" % self.random.randrange(self.table.keys): self.row() for _ in range(count)}
        load(self.database, {key: self.value(row) for key, row in rows.items()})
        marks = ", ".join("?" * (1 + len(self.table.columns)))
        self.sql.executemany(
            f"INSERT OR REPLACE INTO {self.table.name} VALUES ({marks})", [(key, *row) for key, row in rows.items()]
        )

    def delete(self, most: int) -> None:
        begin = self.random.randrange(self.table.keys)
        ends = [b"k%05d" % begin, b"k%05d" % (begin + self.random.randrange(most))]
        subprocess.run(
            ["ldb", f"--db={self.database}", "--hex", "deleterange", *(f"0x{end.hex()}" for end in ends)],
            check=True, capture_output=True,
        )  # fmt: skip
        self.sql.execute(f"DELETE FROM {self.table.name} WHERE pk >= ? AND pk < ?", ends)

    def catch_up(self) -> None:
        """Called after each run of ldb, since the next one removes its log."""
        for index in self.indexes.values():
            index.catch_up(self.database, skip_identity_check=True, durable=False)

    def change(self) -> None:
        self.put(self.table.keys // 20)
        self.catch_up()
        self.delete(self.table.keys // 20)
        self.catch_up()
        if self.random.random() < 0.3:
            self.random.choice(list(self.indexes.values())).compact()

    def group(self) -> cairn.IndexGroup:
        return cairn.IndexGroup({name: self.indexes[name] for name in self.indexed})

    def literal(self, name: str) -> str:
        column = self.table.columns[name]
        if self.random.randrange(50) == 0:
            return "NULL"
        value = column.draw(self.random)
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)

    def comparison(self) -> str:
        name = self.random.choice(self.indexed)
        column = self.table.columns[name]
        kind = self.random.randrange(8)
        negated = self.random.choice(["", "", "NOT "])
        if kind <= 2:
            return f"{name} {self.random.choice(['=', '<>', '<', '<=', '>', '>='])} {self.literal(name)}"
        if kind == 3:
            return f"{name} {negated}IN ({', '.join(self.literal(name) for _ in range(self.random.randrange(1, 5)))})"
        if kind == 4 and column.nulls != "skip":  # such an index matches only values that are not null
            return f"{name} IS {negated}NULL"
        if kind == 5 and column.kind == "text":
            return f"{name} {negated}LIKE '{column.draw(self.random)[:2].replace(chr(39), chr(39) * 2)}%'"
        return f"{name} {negated}BETWEEN {self.literal(name)} AND {self.literal(name)}"

    def predicate(self, depth: int) -> str:
        kind = self.random.randrange(6) if depth else 0
        if kind <= 1:
            return self.comparison()
        if kind == 2:
            return f"NOT ({self.predicate(depth - 1)})"
        joint = " OR " if kind == 3 else " AND "
        return joint.join(f"({self.predicate(depth - 1)})" for _ in range(self.random.randrange(2, 4)))
