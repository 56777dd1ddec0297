"""Inputs that are not batches of an index's keys: each is a named exception with what was expected and found."""

import array
import ctypes
import math
import re
from typing import Any

import cairn
import numpy as np
import pyarrow as pa
import pytest
from conftest import DTYPES, Table
from hypothesis import given
from hypothesis import strategies as st

K = np.arange(6, dtype=np.uint64)


class Duck:
    """Looks like an array, but is not one."""

    dtype = np.dtype(np.uint64)
    shape = (3,)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (K.astype(np.int64) - 1, "keys: value 0: expected an integer that uint64 has, found -1"),
        (K.astype(np.int64)[::2], "expected a contiguous array of int64"),
        (K.astype(np.float64), "expected an array of uint64, found an array of float64; convert with .astype"),
        (K.astype(bool), "found an array of bool"),
        (K.astype(complex), "found an array of complex128"),
        (K.astype(np.longdouble), "found an array of "),
        (K.astype(">u8"), "this machine's byte order, found an array of >u8"),
        (K.astype(">i8"), "found an array of >i8"),
        (K[::2], "expected a contiguous array of uint64, found one with a stride of 16 bytes"),
        (K[::-1], "stride of -8 bytes"),
        (K.reshape(2, 3), "one of 2 dimensions"),
        (np.ndarray(3, np.uint64, b"x" * 32, offset=1), "expected an aligned array"),
        (np.ma.masked_array(K, mask=K > 2), "fill it with .filled"),
        (np.array(["a", "b"]), "found an array of <U1"),
        (np.array([b"a"]), "found an array of |S1"),
        (np.array([1, 2], dtype=object), "found an array of object"),
        (K.astype("M8[s]"), "found an array of datetime64"),
        (np.zeros(3, dtype=[("a", "u8")]), "expected an array of uint64"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "expected an array of uint64"),
        (array.array("l", [1]), "found array.array"),
        (bytearray(8), "expected an array of uint64"),
        (memoryview(b"12345678"), "found memoryview"),
        (b"12345678", "expected a number, u64, found bytes"),
        ("7", "expected a number, u64, found str"),
        (["7"], r"keys\[0\]: expected a number"),
        ([1, b"2"], r"keys\[1\]: expected a number"),
        ([1, [2, 3]], r"keys\[1\]: expected a tuple of 1 values"),
        (True, "found bool"),
        ([np.bool_(True)], "expected a number"),
        (None, "expected a value, found null"),
        ([1, None], "expected a value, found null"),
        ([-1], "expected a whole number from 0"),
        ([1.5], "expected a whole number"),
        ([float("nan")], "expected a whole number"),
        ([2**64], "at most 64 bits"),
        ([-(2**64)], "at most 64 bits"),
        ([1j], "expected a number"),
        (pa.array([1, None, -2]), "keys: value 2: expected an integer that uint64 has, found -2"),
        (pa.array([1, None]), "value 1: expected a value, found null"),
        (pa.array([1.5]), "expected an Arrow array of uint64, found one of float64"),
        (pa.array(["a"]), "found one of string"),
        (pa.array([1, None], pa.uint64()), "value 1: expected a value, found null"),
        (pa.array([K[:2].tolist()]), "found one of list"),
        (pa.array([1.5]).dictionary_encode(), "found one of a dictionary of float64"),
        (pa.array([True]).dictionary_encode(), "found one of a dictionary of bool"),
        (pa.array([1, None], pa.uint64()).dictionary_encode(), "value 1: expected a value, found null"),
        (pa.array([1, -2]).dictionary_encode(), "keys: value 1: expected an integer that uint64 has, found -2"),
        (pa.table({"a": K, "b": K}), "Arrow data of 2 columns"),
        (pa.array([0], pa.timestamp("s")), "the format 'ts"),
        ({1, 2}, "found set"),
        ({"a": K}, "found dict"),
        (range(-1, 1), r"keys\[0\].*expected a whole number from 0"),
        (iter([1]), "found list_iterator"),
        (object(), "found object"),
        (np.ndarray, "found type"),
        (Duck(), "found Duck of uint64"),
        (ctypes.c_uint64(7), "c_ulong|c_uint64|expected one of|one-dim|dimensions"),
    ],
)  # fmt: skip
def test_what_is_no_batch_of_u64(table: Table, keys: Any, message: str) -> None:
    index = table.open("u64")
    for query in (index.find, index.find_first, index.contains, lambda k: index.count(keys=k), lambda k: index.fetch(table.directory, keys=k)):
        # Methods that take ranges accept None.
        if keys is None and query not in (index.find, index.find_first, index.contains):
            continue
        with pytest.raises(cairn.InvalidArgument) as raised:
            query(keys)
        assert re.search(message, str(raised.value)), str(raised.value)
        assert isinstance(raised.value, ValueError)


def test_integers_of_other_types_are_converted_if_that_is_exact(table: Table) -> None:
    limits = {name: np.iinfo(dtype) for name, dtype in DTYPES.items() if name[0] in "ui"}
    for name in DTYPES:
        index = table.open(name, calibration="none", verify="metadata")
        values = sorted({int(v) for v in table.columns[name] if math.isfinite(v) and v == int(v) and not (v == 0 and math.copysign(1, v) < 0)})
        for given, of in limits.items():
            fitting = [v for v in values if of.min <= v <= of.max]
            expected = index.find_first(fitting).tolist()
            array = np.array(fitting, DTYPES[given])
            assert index.find_first(array).tolist() == expected
            assert index.find_first(pa.array(array)).tolist() == expected
            assert index.count(keys=pa.chunked_array([array[:3], array[3:]])).tolist() == index.count(keys=fitting).tolist()
            if name[0] == "f":
                continue
            # The limits of the type, and values past them.
            for beyond in (limits[name].min - 1, limits[name].max + 1):
                if of.min <= beyond <= of.max:
                    with pytest.raises(cairn.InvalidArgument, match=f"value 1: expected an integer that {DTYPES[name]} has, found {beyond}"):
                        index.contains(np.array([0, beyond], DTYPES[given]))
    for dtype, exact, inexact in (("f32", 2**24, 2**24 + 1), ("f64", 2**53, 2**53 + 1), ("f64", -(2**63), 2**63 - 1), ("f32", 2**63, 2**64 - 1)):
        index = table.open(dtype, calibration="none", verify="metadata")
        integers = np.uint64 if exact == 2**63 else np.int64
        index.contains(np.array([exact], integers))
        with pytest.raises(cairn.InvalidArgument, match=f"found {inexact}"):
            index.contains(np.array([inexact], integers))
    nullable = pa.array([None, 3, 2**16 - 1])
    assert table.open("u16_nulls").contains(nullable[1:]).tolist() == table.open("u16_nulls").contains([3, 2**16 - 1]).tolist()
    assert table.open("u16_nulls").find_first(nullable).tolist() == table.open("u16_nulls").find_first([None, 3, 2**16 - 1]).tolist()
    assert table.open("u8").count(keys=range(256)).sum() == len(table.keys)
    assert table.open("u8").count(range(9), range(1, 10)).tolist() == table.open("u8").count(keys=list(range(9))).tolist()
    assert table.open("u8_text").count(leading=range(256)).sum() == sum(t is not None for t in table.columns["text"])


def test_dictionaries_are_read_as_their_values(table: Table) -> None:
    """Categoricals of pandas and Polars, and dictionaries of Arrow: one, sliced, chunked, with nulls, as a column and as a part."""
    texts = [t for t in table.columns["text"] if t is not None][:40] + ["no such text"]
    index = table.open("text")
    expected = index.find_first(texts).tolist()
    encoded = pa.array(texts).dictionary_encode()
    for keys in (encoded, pa.array(texts, pa.large_string()).dictionary_encode(), pa.chunked_array([encoded[:7], encoded[7:]])):
        assert index.find_first(keys).tolist() == expected
        assert index.count(keys=keys).tolist() == index.count(keys=texts).tolist()
    assert index.find_first(encoded[3:9]).tolist() == expected[3:9]
    assert index.count(encoded, encoded, bounds="[]").tolist() == index.count(texts, texts, bounds="[]").tolist()
    assert index.count(prefix=encoded).tolist() == index.count(prefix=texts).tolist()
    numbers = table.columns["u64"][:30]
    assert table.open("u64").find_first(pa.array(numbers, pa.uint64()).dictionary_encode()).tolist() == table.open("u64").find_first(numbers).tolist()
    assert table.open("u8").find_first(pa.array([5, 1, 5]).dictionary_encode()).tolist() == table.open("u8").find_first([5, 1, 5]).tolist()
    with_null = pa.array([None, *texts]).dictionary_encode()
    assert table.open("text_nulls").find_first(with_null).tolist() == table.open("text_nulls").find_first([None, *texts]).tolist()
    pairs = pa.table({"n": pa.array([7] * len(texts), pa.uint8()), "t": encoded})
    assert table.open("u8_text").count(keys=pairs).tolist() == table.open("u8_text").count(keys=[(7, t) for t in texts]).tolist()
    made = cairn.from_arrow(pa.table({"t": encoded}), "t")
    assert made.key_types == ["text"] and made.find_first(texts).tolist() == [texts.index(t) for t in texts]


def test_categoricals_of_data_frames(table: Table) -> None:
    texts = [t for t in table.columns["text"] if t is not None][:20]
    index = table.open("text")
    pl = pytest.importorskip("polars")
    assert index.find_first(pl.Series(texts, dtype=pl.Categorical)).tolist() == index.find_first(texts).tolist()
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"t": pd.Categorical(texts)})
    assert cairn.from_arrow(frame, "t").find_first(texts).tolist() == [texts.index(t) for t in texts]
    if hasattr(frame["t"], "__arrow_c_stream__"):
        assert index.find_first(frame["t"]).tolist() == index.find_first(texts).tolist()


def test_kinds_of_keys_are_not_mixed_up(table: Table) -> None:
    everything: dict[str, Any] = {name: np.array([1], dtype=dtype) for name, dtype in DTYPES.items()}
    everything["text"] = pa.array(["a"])
    everything["bytes"] = pa.array([b"a"])
    for index_type in everything:
        index = table.open(index_type)
        for key_type, keys in everything.items():
            integers = key_type[0] in "ui" and index_type not in ("text", "bytes")
            if key_type == index_type or {key_type, index_type} == {"text", "bytes"} or integers:
                index.find(keys)
            else:
                with pytest.raises(cairn.KeyTypeError, match="expected .* found") as raised:
                    index.find(keys)
                assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (np.array(["a"]), "convert with pyarrow.array"),
        (np.array([b"a"]), "convert with pyarrow.array"),
        (np.array(["a"], dtype=object), "convert with pyarrow.array"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "convert with pyarrow.array"),
        (np.array([1], np.uint8), "expected an Arrow array of strings"),
        (["a", 1], r"keys\[1\]: expected str or bytes, found int"),
        ([bytearray(b"a")], "expected str or bytes, found bytearray"),
        ([None], "found null"),
        (["\ud800"], "lone surrogate"),
        (7, "expected str or bytes, found int"),
        (pa.array([1, 2]).dictionary_encode(), "a dictionary of int64"),
        (pa.array(["a", None]).dictionary_encode(), "value 1: expected a value, found null"),
        (pa.array([1]), "expected an Arrow array of strings or binary, found one of int64"),
    ],
)  # fmt: skip
def test_what_is_no_batch_of_text(table: Table, keys: Any, message: str) -> None:
    for name in ("text", "bytes"):
        with pytest.raises(cairn.InvalidArgument) as raised:
            table.open(name).find(keys)
        assert re.search(message, str(raised.value)), str(raised.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (K, "expected a tuple of 2 columns"),
        ((K,), "found a tuple of 1"),
        ((np.zeros(2, np.uint8), np.zeros(2, np.float32), K), "found a tuple of 3"),
        ((np.zeros(2, np.uint8), ["a", "b"]), "part 2: expected an Arrow array of strings or binary, found list"),
        ((np.zeros(2, np.float32), pa.array(["a", "b"])), "part 1: expected an array of uint8, found an array of float32"),
        ((np.full(2, -1, np.int8), pa.array(["a", "b"])), "part 1: value 0: expected an integer that uint8 has, found -1"),
        (pa.table({"a": [7, 300], "b": ["a", "b"]}), "part 1: value 1: expected an integer that uint8 has, found 300"),
        ((np.zeros(3, np.uint8), pa.array(["a", "b"])), "expected 3 values, as part 1 has, found 2"),
        (pa.table({"a": np.zeros(1, np.uint8)}), "Arrow data of 1 columns"),
        (pa.array([None, {"a": 1, "b": "x"}], pa.struct([("a", pa.uint8()), ("b", pa.string())])), "element 0: expected a struct, .* found null"),
        ([(1, "a"), (1,)], r"keys\[1\]: expected a tuple of 2 values, one per part, found one of 1"),
        ([(1, "a"), 1], r"keys\[1\]: expected a tuple of 2 values"),
        ([(1, 2)], "part 2: expected str or bytes, found int"),
        ((300, "a"), "from 0 to 255"),
        (7, "expected a tuple of 2"),
    ],
)  # fmt: skip
def test_what_is_no_batch_of_two_parts(table: Table, keys: Any, message: str) -> None:
    with pytest.raises(cairn.InvalidArgument) as raised:
        table.open("u8_text").find(keys)
    assert re.search(message, str(raised.value)), str(raised.value)


def test_ranges_that_are_none(table: Table) -> None:
    index = table.open("u64")
    two, three = np.zeros(2, np.uint64), np.zeros(3, np.uint64)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"lower": two, "upper": three}, "upper: expected the number of ends in lower, 2, found 3"),
        ({"lower": two, "keys": two}, "found several"),
        ({"prefix": ["a"]}, "expected a number"),
        ({"lower": two, "bounds": "<>"}, "found '<>'"),
        ({"lower": two, "bounds": ""}, "bounds: expected"),
        ({"leading": two}, "expected a list of tuples of leading values"),
    ]
    for arguments, message in bad:
        with pytest.raises(cairn.InvalidArgument, match=message):
            index.count(**arguments)
        with pytest.raises(cairn.InvalidArgument, match=message):
            index.scan(**arguments)
    for options, message in (
        ({"order": "up"}, "'asc' or 'desc'"),
        ({"after": [b""]}, "expected 2 cursors"),
        ({"after": [b"", 2]}, r"after\[1\]: expected bytes, found int"),
        ({"after": b"ab"}, "after: expected a list, the cursors of an earlier call, found bytes"),
        ({"after": [b"garbage", b""], "limit": 3}, "cursor"),
    ):
        with pytest.raises(cairn.InvalidArgument, match=message):
            index.scan(two, two + 1, **options)  # type: ignore[arg-type]
    with pytest.raises(cairn.InvalidArgument, match="latency_target"):
        index.find(two, latency_target=-1)
    with pytest.raises(cairn.InvalidArgument, match="fewer parts"):
        table.open("u8_text").count((7,), (8,), bounds="[]")


def test_rows_that_are_none(table: Table) -> None:
    index = table.open("u64")
    with pytest.raises(cairn.OutOfRange) as raised:
        index.primary_keys(np.array([cairn.NO_ROW], np.uint32))
    assert isinstance(raised.value, IndexError)
    with pytest.raises(cairn.KeyTypeError, match="row_ids: expected an array of uint32"):
        index.primary_keys(np.array([1], np.int64))
    assert index.primary_keys([0, 1]).to_list() == table.keys[:2]
    found = index.find(K)
    with pytest.raises(IndexError):
        found[6]
    with pytest.raises(IndexError):
        index.primary_keys([0])[1]
    with pytest.raises(ValueError, match="read-only"):
        found.offsets[0] = 1


def broken(values: pa.Array, **changes: Any) -> Any:
    """An Arrow array of the C data interface with wrong fields."""

    class ArrowArray(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
            ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ]  # fmt: skip

    class Broken:
        def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
            schema, capsule = values.__arrow_c_array__()
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            raw = ArrowArray.from_address(get(capsule, b"arrow_array"))
            for name, value in changes.items():
                if name == "buffer":
                    raw.buffers[value] = None
                else:
                    setattr(raw, name, value)
            return schema, capsule

    return Broken()


def test_arrow_arrays_that_break_the_rules(table: Table) -> None:
    numbers, text = pa.array(K), pa.array(["a", "bc"])
    for values, name, changes in (
        (numbers, "u64", {"length": -1}),
        (numbers, "u64", {"offset": -1}),
        (numbers, "u64", {"n_buffers": 1}),
        (numbers, "u64", {"buffer": 1}),
        (text, "text", {"buffer": 1}),
        (text, "text", {"buffer": 2}),
        (text, "text", {"n_buffers": 2}),
    ):
        with pytest.raises(cairn.InvalidArgument, match="breaks the rules"):
            table.open(name).find(broken(values, **changes))
    offsets = pa.py_buffer(np.array([0, 5, 2], np.int32))
    descending = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcdef")])
    with pytest.raises(cairn.InvalidArgument, match="found 2 after 5 at element 2"):
        table.open("text").find(descending)
    with pytest.raises(cairn.InvalidArgument):
        table.open("text").find(type("No", (), {"__arrow_c_array__": lambda self, requested_schema=None: ()})())


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(), lambda x: st.lists(x) | st.tuples(x, x)))
def test_any_python_object_is_a_batch_or_an_exception(table: Table, keys: Any) -> None:
    for name in ("u64", "i8", "f32", "text", "u8_text", "text_nulls"):
        index = table.open(name, calibration="none", verify="metadata")
        for query in (index.contains, lambda k, i=index: i.count(k), lambda k, i=index: i.count(prefix=k)):
            try:
                assert query(keys).ndim == 1  # type: ignore[operator]
            except cairn.InvalidArgument as error:
                assert "expected" in str(error)


@given(
    st.sampled_from(["u1", "u2", "<u4", ">u4", "<u8", ">u8", "i4", "i8", "f2", "f4", ">f4", "f8", "?", "S3", "U2", "O", "M8[s]", "V4"]),
    st.integers(0, 3), st.sampled_from([1, 2, -1]), st.booleans(),
)  # fmt: skip
def test_any_array_is_a_batch_or_an_exception(table: Table, dtype: str, dimensions: int, step: int, aligned: bool) -> None:
    base = np.zeros(1 + 8 * 64, np.uint8)[0 if aligned else 1 :]
    kind = np.dtype(dtype)
    values = np.zeros(16, kind) if kind.hasobject else base[: 16 * kind.itemsize].view(kind)
    values = {0: values.reshape(16)[0:1].reshape(()), 1: values[::step], 2: values.reshape(4, 4)[:, ::step], 3: values.reshape(2, 2, 4)}[dimensions]
    for name in ("u8", "u32", "u64", "i32", "f32", "text", "u8_text"):
        index = table.open(name, calibration="none", verify="metadata")
        try:
            rows = index.find_first(values)
        except cairn.InvalidArgument as error:
            assert "expected" in str(error)
        else:
            assert rows.shape == (values.size,)
            number = name not in ("text", "u8_text")
            integers = number and values.dtype.kind in "iu" and values.dtype.isnative
            assert values.ndim == 0 or (integers or (number and values.dtype == np.dtype(DTYPES[name]))) and values.flags.c_contiguous
