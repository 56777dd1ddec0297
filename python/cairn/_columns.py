"""cairn.from_arrow."""

import importlib
from collections.abc import Sequence
from typing import Any

from cairn import _cairn
from cairn.errors import InvalidArgument


def from_arrow(data: Any, column: str | Sequence[str] | None = None, **options: Any) -> _cairn.ColumnIndex:
    """An index over an Arrow array, or over columns of a table; rows are numbered from 0.

    data: an array, chunked array, record batch or table of pyarrow, Polars or any library with Arrow's
        PyCapsule interface, or a pandas DataFrame.
    column: the name of the key's column, or the names of its parts; None: `data` itself.
    options: those of from_columns.
    """
    if column is None:
        return _cairn.from_columns(data, **options)
    if isinstance(column, str):
        return _cairn.from_columns(_one(data, column), **options)
    if len(column) == 0:
        raise InvalidArgument("column: expected the name of a column, or of several, found none")
    columns = tuple(_one(data, name) for name in column)
    return _cairn.from_columns(columns if len(columns) > 1 else columns[0], **options)


def _one(data: Any, name: str) -> Any:
    values = data[name]
    # A pandas Series of numbers is a NumPy array; any other Series is converted to Arrow.
    if type(values).__module__.partition(".")[0] == "pandas" and not hasattr(values, "__arrow_c_stream__"):
        if values.dtype.kind in "iuf":
            return values.to_numpy()
        return importlib.import_module("pyarrow").Array.from_pandas(values)
    return values
