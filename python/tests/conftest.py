"""Databases to test on, created by RocksDB's ldb, and indexes over them."""

import math
import pathlib
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cairn
import hypothesis
import pytest

hypothesis.settings.register_profile("cairn", deadline=None, max_examples=60)
hypothesis.settings.load_profile("cairn")

NUMBERS = {
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d",
}  # fmt: skip
DTYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64",
}  # fmt: skip
OFFSETS = {}
_at = 0
for _type, _code in NUMBERS.items():
    OFFSETS[_type] = _at
    _at += struct.calcsize(">" + _code)
TEXT_AT = _at + 1  # after one byte, without which text is null


def load(directory: pathlib.Path, rows: Mapping[bytes, bytes]) -> None:
    """Puts rows into a database, which is created if it does not exist."""
    if shutil.which("ldb") is None:
        pytest.skip("needs ldb, of Debian's rocksdb-tools")
    text = "".join(f"0x{key.hex()} ==> 0x{value.hex()}\n" for key, value in rows.items())
    subprocess.run(
        ["ldb", f"--db={directory}", "--create_if_missing", "--hex", "load"],
        input=text.encode(), check=True, capture_output=True,
    )  # fmt: skip


def number_source(type_name: str) -> str:
    width = struct.calcsize(">" + NUMBERS[type_name])
    return f"value[{OFFSETS[type_name]}:{width}]:{type_name}" + ("be" if width > 1 else "")


def order(value: Any) -> Any:
    """A key that sorts values as Cairn does: -0.0 before 0.0, every NaN equal and last; null first."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, float):
        if math.isnan(value):
            return (2,)
        return (1, value, math.copysign(1, value))
    return (1, value)


@dataclass(repr=False)
class Table:
    """A database and its contents, by type; row i has primary key keys[i]."""

    directory: pathlib.Path
    keys: list[bytes]
    columns: dict[str, list[Any]]
    indexes: pathlib.Path

    def open(self, name: str, **options: Any) -> cairn.Index:
        return cairn.open(self.indexes / name, **options)

    def entries(self, *types: str) -> list[tuple[Any, int]]:
        """(key, row) in order; keys are tuples if there are several types."""
        rows = range(len(self.keys))
        if len(types) == 1:
            pairs = [(self.columns[types[0]][row], row) for row in rows]
            return sorted(pairs, key=lambda pair: (order(pair[0]), pair[1]))
        tuples = [(tuple(self.columns[t][row] for t in types), row) for row in rows]
        return sorted(tuples, key=lambda pair: (tuple(order(v) for v in pair[0]), pair[1]))


SPECS = {name: number_source(name) for name in NUMBERS} | {
    "text": f"value[{TEXT_AT}:]:text",
    "bytes": f"value[{TEXT_AT}:]:bytes",
    "u8_text": f"{number_source('u8')},value[{TEXT_AT}:]:text",
    "i16_f32": f"{number_source('i16')},{number_source('f32')}",
    "u8_i16": f"{number_source('u8')},{number_source('i16')}",
    "text_nulls": f"value[{TEXT_AT}:]:text,nulls=first",
    "u16_nulls": f"{number_source('u16')},nulls=last",
}


def make_columns(rows: int, seed: int) -> dict[str, list[Any]]:
    rng = random.Random(seed)
    columns: dict[str, list[Any]] = {}
    for name, code in NUMBERS.items():
        bits = 8 * struct.calcsize(">" + code)
        values: list[Any] = []
        for _ in range(rows):
            if name in ("f32", "f64"):
                value = rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan, rng.gauss(0, 1e3), rng.random() * 10])
                value = round(value, 1) if math.isfinite(value) else value
                values.append(struct.unpack(">" + code, struct.pack(">" + code, value))[0])
            else:
                low = 0 if name[0] == "u" else -(1 << (bits - 1))
                high = (1 << bits) - 1 + low
                values.append(rng.choice([low, high, low + rng.randrange(20), rng.randint(low, high)]))
        columns[name] = values
    words = ["", "a", "a\0", "a\0b", "b", "Lisbon", "Lisboa", "Oslo", "Ålesund", "東京"]
    texts = [rng.choice(words) + rng.choice(["", str(rng.randrange(300))]) for _ in range(rows)]
    columns["text"] = [None if rng.random() < 0.05 else text for text in texts]
    return columns


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    root = tmp_path_factory.mktemp("table")
    rows = 3000
    columns = make_columns(rows, seed=1)
    keys = [f"{row:06}".encode() for row in range(rows)]
    values = {}
    for row in range(rows):
        packed = b"".join(struct.pack(">" + code, columns[name][row]) for name, code in NUMBERS.items())
        text = columns["text"][row]
        values[keys[row]] = packed if text is None else packed + b"|" + text.encode()
    load(root / "db", values)
    cairn.build(root / "db", {root / name: spec for name, spec in SPECS.items()})
    return Table(root / "db", keys, columns, root)


@pytest.fixture
def make_table(tmp_path: pathlib.Path) -> Callable[[Mapping[bytes, bytes]], pathlib.Path]:
    def make(rows: Mapping[bytes, bytes]) -> pathlib.Path:
        load(tmp_path / "db", rows)
        return tmp_path / "db"

    return make
