"""Batches of keys that are cut into parts and sent: NumPy arrays, Arrow arrays, lists, and tuples of these."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Positions = npt.NDArray[Any]


def column_of(keys: Any) -> Any:
    """Returns a column in a form that `take` and `part` can cut: a NumPy or Arrow array, or a list."""
    if isinstance(keys, np.ndarray):
        return [keys.item()] if keys.ndim == 0 else keys
    if isinstance(keys, pa.Array):
        # Arrow's take does not support views.
        if pa.types.is_string_view(keys.type):
            return keys.cast(pa.large_string())
        return keys.cast(pa.large_binary()) if pa.types.is_binary_view(keys.type) else keys
    if isinstance(keys, pa.ChunkedArray):
        return column_of(keys.combine_chunks())
    if isinstance(keys, (pa.Table, pa.RecordBatch)):
        return tuple(column_of(column) for column in keys.columns)
    if hasattr(keys, "__arrow_c_array__") or hasattr(keys, "__arrow_c_stream__"):
        return column_of(pa.chunked_array(keys) if hasattr(keys, "__arrow_c_stream__") else pa.array(keys))
    if isinstance(keys, list):
        return keys
    if isinstance(keys, (memoryview, bytearray)) or type(keys).__module__ == "array":
        return np.asarray(keys)
    return keys


def columns_of(keys: Any, parts: int) -> Any:
    """Keys of an index with `parts` parts, given as to cairn.Index, in a form that can be sliced; None stays None."""
    if keys is None:
        return None
    if isinstance(keys, tuple):
        if parts == 1:
            return list(keys)
        columns = tuple(column_of(column) for column in keys)
        return [keys] if all(_is_value(column) for column in columns) else columns
    column = column_of(keys)
    if isinstance(column, tuple) and len(column) == 1:
        return column[0]
    return [column] if _is_value(column) else column


def _is_value(column: Any) -> bool:
    return not isinstance(column, (np.ndarray, pa.Array, list, tuple))


def size(columns: Any) -> int:
    if isinstance(columns, tuple):
        return size(columns[0])
    return len(columns)


def take(columns: Any, positions: Positions) -> Any:
    """The keys at some positions, as columns."""
    if columns is None:
        return None
    if isinstance(columns, tuple):
        return tuple(take(column, positions) for column in columns)
    if isinstance(columns, np.ndarray):
        return columns[positions]
    if isinstance(columns, list):
        return [columns[i] for i in positions]
    return columns.take(pa.array(positions))


def part(columns: Any, begin: int, end: int) -> Any:
    """The keys from one position to another; arrays are not copied."""
    if columns is None:
        return None
    if isinstance(columns, tuple):
        return tuple(part(column, begin, end) for column in columns)
    if isinstance(columns, (np.ndarray, list)):
        return columns[begin:end]
    return columns.slice(begin, end - begin)
