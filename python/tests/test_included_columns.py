"""Columns that an index includes, compared with the known contents of the rows."""

import math
import pathlib
import struct
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import DTYPES, NUMBERS, TEXT_AT, Table, number_source

INCLUDED = ",".join(
    [f"{name}={number_source(name)}" for name in NUMBERS] + [f"text=value[{TEXT_AT}:]:text", f"raw=value[{TEXT_AT}:]:bytes"]
)
NAMES = [*NUMBERS, "text", "raw"]


@pytest.fixture(scope="module")
def index(table: Table, tmp_path_factory: pytest.TempPathFactory) -> cairn.Index:
    out = tmp_path_factory.mktemp("included") / "index"
    cairn.build(table.directory, {out: f"key:bytes,include({INCLUDED})"})
    return cairn.open(out)


def same(found: Any, expected: Any, name: str) -> bool:
    if expected is None or found is None:
        return found is expected
    if name in ("text", "raw"):
        encoded = expected.encode()
        return bool((found.encode() if isinstance(found, str) else found) == encoded)
    if name[0] == "f" and math.isnan(expected):
        return math.isnan(found)
    code = NUMBERS[name]
    return struct.pack(">" + code, found) == struct.pack(">" + code, expected)


def test_scans_return_what_rows_hold(table: Table, index: cairn.Index) -> None:
    matches = index.scan(columns=NAMES, with_keys=True)
    assert list(matches.columns) == NAMES
    rows = {key: row for row, key in enumerate(table.keys)}
    keys = matches.keys.to_list()
    assert sorted(keys) == sorted(table.keys)
    for name in NAMES:
        values = matches.columns[name].to_list()
        expected = table.columns["text" if name == "raw" else name]
        for key, value in zip(keys, values, strict=True):
            assert same(value, expected[rows[key]], name), (name, key)


def test_find_and_limits(table: Table, index: cairn.Index) -> None:
    some = table.keys[::7] + [b"absent"]
    matches = index.find(some, columns=["u32"])
    whole = [value for value in table.columns["u32"][::7]]
    assert matches.columns["u32"].to_list() == whole
    page = index.scan(columns=["u8"], limit=3)
    assert len(page.columns["u8"]) == 3
    assert page.columns["u8"].to_list() == index.scan(columns=["u8"]).columns["u8"].to_list()[:3]


def test_arrow_and_numpy_take_them(table: Table, index: cairn.Index) -> None:
    matches = index.scan(columns=["f64", "raw", "u16"], primary_keys=True)
    frame = pa.table(matches)
    assert frame.column_names == ["query", "row_id", "primary_key", "f64", "raw", "u16"]
    assert frame["u16"].to_pylist() == matches.columns["u16"].to_list()
    if None not in table.columns["u16"]:
        numbers = np.asarray(matches.columns["u16"])
        assert numbers.dtype == DTYPES["u16"]


def test_what_is_not_included_is_refused(table: Table, index: cairn.Index) -> None:
    with pytest.raises(cairn.InvalidArgument, match="no column 'price', only u8, u16"):
        index.scan(columns=["price"])
    with pytest.raises(cairn.InvalidArgument, match="nor any other"):
        table.open("u32").find(np.array([1], dtype=np.uint32), columns=["u8"])
    with pytest.raises(TypeError):
        index.scan(columns="u8")  # type: ignore[arg-type]
    assert index.scan().columns == {}


def test_specs_that_make_no_sense_are_refused(table: Table, tmp_path: pathlib.Path) -> None:
    with pytest.raises(cairn.InvalidArgument, match="'a' again"):
        cairn.build(table.directory, {tmp_path / "index": "key:bytes,include(a=key:bytes,a=key:text)"})
