"""Joins, compared with SQLite's."""

import pathlib
import random
import sqlite3

import cairn
import pyarrow as pa
import pytest
from conftest import load


def tables(path: pathlib.Path, seed: int) -> tuple[sqlite3.Connection, cairn.Index, cairn.Index]:
    chance = random.Random(seed)
    sql = sqlite3.connect(":memory:")
    indexes = []
    for name, rows in (("orders", 300), ("customers", 90)):
        sql.execute(f"CREATE TABLE {name} (id TEXT, customer INTEGER, amount INTEGER)")
        content: dict[bytes, bytes] = {}
        for i in range(rows):
            customer = None if chance.random() < 0.1 else chance.randrange(60)
            amount = None if chance.random() < 0.2 else chance.randrange(-1000, 1000)
            sql.execute(f"INSERT INTO {name} VALUES (?, ?, ?)", (f"{name}{i}", customer, amount))
            fields = [f'"{field}":{value}' for field, value in (("c", customer), ("a", amount)) if value is not None]
            content[f"{name}{i}".encode()] = ("{" + ",".join(fields) + "}").encode()
        nulls = chance.choice(["skip", "first", "last"])
        spec = f"value.json('/c'):u16,nulls={nulls},include(amount=value.json('/a'):i32)"
        load(path / f"{name}.db", content)
        cairn.build(path / f"{name}.db", {path / name: spec})
        indexes.append(cairn.open(path / name, calibration="none"))
    return sql, indexes[0], indexes[1]


@pytest.mark.parametrize("seed", range(4))
def test_joins_are_those_of_sqlite(tmp_path: pathlib.Path, seed: int) -> None:
    sql, orders, customers = tables(tmp_path, seed)
    expected = sql.execute(
        "SELECT o.customer, o.id, c.id, o.amount, c.amount FROM orders o JOIN customers c ON o.customer = c.customer"
    ).fetchall()
    pairs = cairn.join(
        orders, customers, with_keys=True, primary_keys=True, left_columns=["amount"], right_columns=["amount"]
    )
    table = pa.table(pairs)
    assert table.column_names == [
        "left.row_id", "right.row_id", "key", "left.primary_key", "right.primary_key", "left.amount", "right.amount",
    ]  # fmt: skip
    found = [
        (row["key"], row["left.primary_key"].decode(), row["right.primary_key"].decode(), row["left.amount"], row["right.amount"])
        for row in table.to_pylist()
    ]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(pairs) == cairn.count_join(orders, customers) == len(expected) > 0
    assert pairs.cursor == b"" and pairs.left.dtype == pairs.right.dtype == "uint64"

    rows: list[tuple[int, int]] = []
    after = b""
    while True:
        page = cairn.join(orders, customers, limit=17, after=after)
        rows += zip(page.left.tolist(), page.right.tolist(), strict=True)
        after = page.cursor
        if not after:
            break
        assert len(page) == 17
    assert rows == list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def test_what_cannot_be_joined(tmp_path: pathlib.Path) -> None:
    database = tmp_path / "db"
    load(database, {b"a": b"1", b"b": b"2"})
    cairn.build(database, {tmp_path / "text": "value:text", tmp_path / "number": "value.field('|',0):u8"})
    with cairn.open(tmp_path / "text") as text, cairn.open(tmp_path / "number") as number:
        with pytest.raises(cairn.InvalidArgument, match=r"\(text\) and \(u8\)"):
            cairn.join(text, number)
        with pytest.raises(cairn.InvalidArgument, match="no column 'x'"):
            cairn.join(text, text, left_columns=["x"])
        with pytest.raises(cairn.InvalidArgument, match="limit: expected an integer from 0"):
            cairn.join(text, text, limit=-1)
        with pytest.raises(cairn.InvalidArgument):
            cairn.join(text, text, after=b"no cursor")
        assert cairn.join(text, text).keys is None
    with pytest.raises(cairn.Closed):
        cairn.join(text, text)
