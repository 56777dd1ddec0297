"""Random queries over data like TPC-H's and the Star Schema Benchmark's, compared with SQLite, with updates and
deletes in between.

Predicates, their rows in an order and in pages, their groups and aggregates, aggregates of ranges and groups of
an index, joins. CAIRN_SQL_QUESTIONS=2000 sets the number of queries per kind and table.
"""

import collections
import math
import os
import pathlib
import random
import sqlite3
from typing import Any

import cairn
import pyarrow as pa
import pytest
from sql_worlds import LINEITEM, LINEORDER, ORDERS, Table, World

QUESTIONS = int(os.environ.get("CAIRN_SQL_QUESTIONS", "120"))  # of each kind
A_ROUND = 30
asked: collections.Counter[str] = collections.Counter()
FUNCTIONS = ["count", "count_distinct", "sum", "avg", "min", "max"]


def plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def same(found: Any, expected: Any) -> bool:
    """Sums of these floats are exact; means are rounded once or twice."""
    if isinstance(found, float) and isinstance(expected, int | float):
        return math.isclose(found, expected, rel_tol=1e-14, abs_tol=0)
    return bool(plain(found) == plain(expected))


def check(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]], question: object) -> None:
    asked["lines of answers"] += len(expected)
    assert len(found) == len(expected), question
    for row, wanted in zip(found, expected, strict=True):
        assert len(row) == len(wanted) and all(map(same, row, wanted)), (question, row, wanted)


def lines(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def function(world: World) -> tuple[str | tuple[str, str], str]:
    """An aggregate in Cairn's form and in SQL."""
    rng = world.random
    name = rng.choice(FUNCTIONS)
    column = rng.choice(world.numbers if name in ("sum", "avg") else columns_of(world))
    if name == "count" and rng.random() < 0.5:
        return "count", "count(*)"
    return (name, column), f"count(DISTINCT {column})" if name == "count_distinct" else f"{name}({column})"


def columns_of(world: World) -> list[str]:
    """The columns that a group of indexes has for a row: keys and, once, included columns."""
    return list(world.table.columns)


def named(world: World, column: str) -> str:
    """The column's name. If several indexes include it, it is read from any of them that has the row."""
    owners = [name for name, other in world.table.columns.items() if column in other.include]
    if len(owners) > 1:
        return f"{world.random.choice(owners)}.{column}"
    return column


def ask_groups(world: World, group: cairn.IndexGroup) -> None:
    rng = world.random
    where = world.predicate(rng.randrange(4)) if rng.random() < 0.95 else None
    by = rng.sample(columns_of(world), rng.choice([0, 0, 1, 1, 2, 3]))
    functions = [function(world) for _ in range(rng.randrange(1, 5))]
    asked: dict[str, Any] = {}
    for i, (of, _) in enumerate(functions):
        asked[f"a{i}"] = of if isinstance(of, str) else (of[0], named(world, of[1]))
    names = {column: named(world, column) for column in by}
    # Means are rounded, so the order of nearly equal ones is unspecified.
    sortable = [(names[column], column) for column in by]
    sortable += [(f"a{i}", sql) for i, (_, sql) in enumerate(functions) if not sql.startswith("avg")]
    order = [(*rng.choice(sortable), rng.choice(["ASC", "DESC"])) for _ in range(rng.randrange(3))] if sortable else []
    sql_order = ", ".join([f"{sql} {way}" for _, sql, way in order] + by)
    statement = (
        f"SELECT {', '.join(by + [sql for _, sql in functions])} FROM {world.table.name} WHERE {where or 'TRUE'}"
        + (f" GROUP BY {', '.join(by)} ORDER BY {sql_order}" if by else "")
    )
    expected = world.sql.execute(statement).fetchall()
    limit = rng.choice([None, None, 1, 3, 10])
    limit = limit if limit is None or len(expected) <= 20 * limit else len(expected) // 3
    found: list[tuple[Any, ...]] = []
    after = b""
    while True:
        page = group.aggregate(
            asked, where, group_by=list(names.values()), order_by=[f"{name} {way.lower()}" for name, _, way in order],
            limit=limit, after=after, strategy=rng.choice(["auto", "auto", "gather", "bitmap"]),
        )  # fmt: skip
        found += lines(pa.table(page))
        after = page.cursor
        if not after:
            break
        assert len(page) == limit
    check(found, expected, statement)


def ask_rows(world: World, group: cairn.IndexGroup) -> None:
    """Rows with columns, in the order of an index, two pages of them."""
    rng = world.random
    where = world.predicate(rng.randrange(4))
    by = rng.choice([None, *world.indexed])
    select = rng.sample(columns_of(world), rng.randrange(4))
    way = rng.choice(["ASC", "DESC"])
    nulls = "NULLS LAST"
    ties = f"pk {way}"
    if by is not None:
        policy = world.table.columns[by].nulls
        nulls = "NULLS FIRST" if policy != "skip" and (policy == "first") == (way == "ASC") else nulls
        # Rows that are not in the index are in ascending order of primary keys in both directions.
        ties = f"CASE WHEN {by} IS NULL AND '{policy}' = 'skip' THEN pk END ASC, {ties}"
    limit = rng.choice([1, 4, 30, 5000])
    statement = (
        f"SELECT {', '.join(['pk', *select])} FROM {world.table.name} WHERE {where} ORDER BY "
        + (f"{by} {way} {nulls}, " if by is not None else "")
        + f"{ties} LIMIT {2 * limit}"
    )
    columns = [named(world, column) for column in select]
    found: list[tuple[Any, ...]] = []
    after = b""
    for _ in range(2):
        page = group.where(where, order_by=by, descending=way == "DESC", limit=limit, after=after, columns=columns)
        table = pa.table(page)
        found += lines(table.select(["primary_key", *columns]))
        after = page.cursor
        if not after:
            break
    check(found, world.sql.execute(statement).fetchall(), (statement, limit))
    assert group.count(where) == world.sql.execute(f"SELECT count(*) FROM {world.table.name} WHERE {where}").fetchone()[0]


def ask_index(world: World) -> None:
    """Aggregates of an index's ranges and groups."""
    rng = world.random
    name, parts = rng.choice(list(world.table.composites.items()))
    functions = [f for f in (function(world) for _ in range(3)) if isinstance(f[0], str) or f[0][1] in world.numbers]
    # In an index, count_distinct counts its keys.
    keys = {f"a{i}": "count_distinct" if "DISTINCT" in sql else of for i, (of, sql) in enumerate(functions)}
    asked = {**keys, "keys": "count_distinct"}
    different = "count(DISTINCT " + " || '|' || ".join(parts) + ")"
    selected = ", ".join(["count(*)", *(different if "DISTINCT" in sql else sql for _, sql in functions), different])
    there = " AND ".join(f"{part} IS NOT NULL" for part in parts)
    index, first = world.indexes[name], [world.table.columns[parts[0]].draw(rng) for _ in range(3)]
    values = index.aggregate({"rows": "count", **asked}, leading=[(key,) for key in first])
    for key, found in zip(first, values.to_list(), strict=True):
        statement = f"SELECT {selected} FROM {world.table.name} WHERE {parts[0]} = ? AND {there}"
        check([found], world.sql.execute(statement, (key,)).fetchall(), (name, key, statement))
    leading = rng.randrange(1, len(parts) + 1)
    groups = pa.table(index.group_by(leading, {"rows": "count", **asked}))
    by = ", ".join(parts[:leading])
    statement = f"SELECT {by}, {selected} FROM {world.table.name} WHERE {there} GROUP BY {by} ORDER BY {by}"
    check(lines(groups.drop_columns(["query"])), world.sql.execute(statement).fetchall(), statement)


def ask_join(left: World, right: World, key: str) -> None:
    select = list(left.table.columns[key].include), list(right.table.columns[key].include)
    pairs = cairn.join(
        left.indexes[key], right.indexes[key], primary_keys=True, left_columns=select[0], right_columns=select[1]
    )
    table = pa.table(pairs).drop_columns(["left.row_id", "right.row_id"])
    names = ", ".join(["l.pk", "r.pk", *(f"l.{name}" for name in select[0]), *(f"r.{name}" for name in select[1])])
    statement = f"SELECT {names} FROM {left.table.name} l JOIN {right.table.name} r ON l.{key} = r.{key}"
    expected = left.sql.execute(statement).fetchall()
    check(sorted(lines(table), key=lambda row: row[:2]), sorted(expected), statement)
    assert cairn.count_join(left.indexes[key], right.indexes[key]) == len(expected)


@pytest.mark.parametrize("table", [LINEITEM, LINEORDER], ids=lambda table: table.name)
def test_predicates_and_aggregates_are_sqlites(table: Table, tmp_path: pathlib.Path) -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED", "20261124"))
    world = World(table, tmp_path, sqlite3.connect(":memory:"), random.Random(seed))
    asked.clear()
    while asked["groups"] < QUESTIONS:
        group = world.group()
        for _ in range(min(A_ROUND, QUESTIONS)):
            ask_groups(world, group)
            ask_rows(world, group)
            asked.update(["groups", "rows"])
        for _ in range(A_ROUND // 3):
            ask_index(world)
            asked.update(["ranges and groups of an index"])
        world.change()
    print(table.name, dict(asked))


def test_joins_are_sqlites(tmp_path: pathlib.Path) -> None:
    rng = random.Random(int(os.environ.get("CAIRN_TEST_SEED", "20261124")))
    sql = sqlite3.connect(":memory:")
    left, right = World(LINEITEM, tmp_path, sql, rng), World(ORDERS, tmp_path, sql, rng)
    asked.clear()
    for _ in range(max(1, QUESTIONS // 40)):
        ask_join(left, right, "orderkey")
        ask_join(right, left, "orderkey")
        asked.update(["joins", "joins"])
        left.change()
        right.change()
    print(dict(asked))
