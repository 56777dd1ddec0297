"""Secondary indexes for RocksDB, queried in batches: NumPy and Arrow in, NumPy and Arrow out.

    import cairn, numpy as np

    cairn.build("/data/checkpoint", {"/data/age": "value.json('/age'):u64"}, progress=True)
    with cairn.open("/data/age") as index:
        matches = index.find(np.array([30, 31], dtype=np.uint64), primary_keys=True)
        matches.offsets, matches.row_ids, matches.primary_keys
"""

from cairn import errors, shards
from cairn._build import build
from cairn._cairn import (
    NO_ROW,
    NO_GLOBAL_ROW,
    BuildReport,
    CatchUpReport,
    Column,
    ColumnIndex,
    DeviceIndex,
    Explain,
    AggregateGroupsResult,
    Index,
    IndexGroup,
    JoinResult,
    FindResult,
    GroupByResult,
    Snapshot,
    WhereResult,
    count_join,
    declare_comparator,
    from_columns,
    join,
    open,
)
from cairn._columns import from_arrow
from cairn._cairn import version as _version
from cairn.errors import (
    AlreadyExists,
    ArgumentTypeError,
    Cancelled,
    Closed,
    DataLoss,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    Forked,
    Internal,
    InvalidArgument,
    KeyTypeError,
    NotFound,
    OutOfRange,
    OutputTypeError,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)

__version__: str = _version()

__all__ = [
    "NO_ROW",
    "NO_GLOBAL_ROW",
    "AlreadyExists",
    "ArgumentTypeError",
    "BuildReport",
    "Cancelled",
    "CatchUpReport",
    "Closed",
    "Column",
    "ColumnIndex",
    "DataLoss",
    "DeadlineExceeded",
    "DeviceIndex",
    "Error",
    "Explain",
    "FailedPrecondition",
    "Forked",
    "AggregateGroupsResult",
    "Index",
    "IndexGroup",
    "Internal",
    "InvalidArgument",
    "JoinResult",
    "KeyTypeError",
    "FindResult",
    "NotFound",
    "OutOfRange",
    "OutputTypeError",
    "ResourceExhausted",
    "GroupByResult",
    "Snapshot",
    "Unavailable",
    "Unimplemented",
    "WhereResult",
    "__version__",
    "build",
    "count_join",
    "declare_comparator",
    "errors",
    "from_arrow",
    "from_columns",
    "join",
    "open",
    "shards",
]
