"""Results of several shards, combined."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import cairn
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from cairn.errors import ArgumentTypeError, InvalidArgument, OutOfRange
from cairn.shards import ShardMap

Rows = npt.NDArray[np.uint64]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Partial(Generic[Answer]):
    """Results of the available shards, for a call with on_missing="partial"."""

    answer: Answer  # as without that option, but without missing shards
    complete: npt.NDArray[np.bool_]  # bool[queries]: False if a missing shard may have results
    missing: dict[int, str]  # shard -> reason


@dataclass(frozen=True)
class FindResult:
    """The rows that each query of a batch found, like cairn.FindResult, but from several hosts.

    Query i has the rows row_ids[offsets[i]:offsets[i + 1]], by (key, source, primary key), also as matches[i].
    Rows are `shard << 32 | row` of `generation`. Arrow takes all rows as a table, with one row per match.
    """

    offsets: Rows  # uint64[queries + 1]
    row_ids: Rows  # uint64[rows]
    generation: int
    keys: pa.Array | None = None  # of a scan with_keys
    primary_keys: pa.Array | None = None  # large_binary, if requested
    cursors: list[bytes] = field(default_factory=list)  # of a scan with a limit over an index sharded by key range: for `after`
    columns: dict[str, pa.Array] = field(default_factory=dict)  # the requested included columns by name

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> Rows:
        if not -len(self) <= query < len(self):
            raise OutOfRange(f"expected a query below {len(self)}, found {query}")
        query %= len(self)
        return self.row_ids[int(self.offsets[query]) : int(self.offsets[query + 1])]

    def __repr__(self) -> str:
        return f"<cairn.ray.FindResult of {len(self)} queries, {len(self.row_ids)} rows>"

    def as_asked(self, shard_map: ShardMap, with_keys: bool, primary_keys: bool, columns: Sequence[str]) -> "FindResult":
        """The same with only the requested columns, in their own types even if there are no rows."""
        for name in columns:
            if name not in shard_map.included:
                raise InvalidArgument(f"the index includes no column '{name}'")
        there = self.primary_keys if self.primary_keys is not None else pa.array([], pa.large_binary())
        return dataclasses.replace(
            self,
            keys=_typed(self.keys, shard_map.key_types) if with_keys else None,
            primary_keys=there if primary_keys else None,
            columns={name: _typed(self.columns.get(name), [shard_map.included[name]]) for name in columns},
        )

    def to_arrow(self) -> pa.Table:
        """A table with the columns query, row_id and, if present, key, primary_key and included ones."""
        columns: dict[str, Any] = {
            "query": np.repeat(np.arange(len(self), dtype=np.uint32), np.diff(self.offsets).astype(np.int64)),
            "row_id": self.row_ids,
        }
        if self.keys is not None:
            columns["key"] = self.keys
        if self.primary_keys is not None:
            columns["primary_key"] = self.primary_keys
        return pa.table(columns | self.columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


_ARROW_TYPES = {
    "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(),
    "f32": pa.float32(), "f64": pa.float64(), "text": pa.large_string(), "bytes": pa.large_binary(),
}  # fmt: skip


def names_of(columns: Sequence[str] | None) -> list[str]:
    """Names of included columns, as a list."""
    if isinstance(columns, str):
        raise ArgumentTypeError("columns: expected a sequence of names, found str; write ['name'] for one name")
    names = [] if columns is None else list(columns)
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(f"columns: expected each name once, found '{name}' twice")
    return names


def _typed(values: pa.Array | None, types: list[str]) -> pa.Array:
    """Converts values as they are sent, with text as binary, to their Arrow types; text that is not UTF-8 stays
    binary.
    """
    arrow = [_ARROW_TYPES[name] for name in types]
    of = arrow[0] if len(arrow) == 1 else pa.struct([(f"part{i + 1}", t) for i, t in enumerate(arrow)])
    if values is None:
        return pa.array([], of)
    try:
        return values.cast(of)
    except pa.ArrowInvalid:
        return values


@dataclass
class Piece:
    """The results of one shard for some queries of a batch."""

    shard: int
    queries: npt.NDArray[Any]  # their numbers in the batch, ascending
    answer: Any


def wide(shard: int, row_ids: npt.NDArray[np.uint32]) -> Rows:
    """Rows of a shard as 64-bit numbers; a missing row becomes NO_GLOBAL_ROW."""
    rows = row_ids.astype(np.uint64)
    missing = row_ids == cairn.NO_ROW
    rows |= np.uint64(shard << 32)
    rows[missing] = cairn.NO_GLOBAL_ROW
    return rows


def first_rows(size: int, pieces: list[Piece]) -> Rows:
    """For each query, the row of the first shard that has one."""
    if len(pieces) == 1 and len(pieces[0].queries) == size:
        return wide(pieces[0].shard, pieces[0].answer)
    rows = np.full(size, cairn.NO_GLOBAL_ROW, np.uint64)
    for piece in sorted(pieces, key=lambda p: -p.shard):
        found = piece.answer != cairn.NO_ROW
        rows[piece.queries[found]] = wide(piece.shard, piece.answer[found])
    return rows


def any_found(size: int, pieces: list[Piece]) -> npt.NDArray[np.bool_]:
    found = np.zeros(size, np.bool_)
    for piece in pieces:
        found[piece.queries] |= piece.answer
    return found


def sums(size: int, pieces: list[Piece]) -> npt.NDArray[np.uint64]:
    counts = np.zeros(size, np.uint64)
    for piece in pieces:
        counts[piece.queries] += piece.answer
    return counts


def parts_of(pieces: list[Piece]) -> list[tuple[npt.NDArray[np.uint32], bytes]]:
    """The input of ShardMap for combining aggregates, in the order of the shards, in which floats are added."""
    return [(np.ascontiguousarray(piece.queries, np.uint32), piece.answer) for piece in sorted(pieces, key=lambda p: p.shard)]


def concatenated(size: int, pieces: list[Piece], generation: int, descending: bool = False) -> FindResult:
    """The rows of each query, shard after shard (descending: in reverse order of the shards).

    A query may have several pieces of one shard, which stay in order.
    """
    pieces = sorted(pieces, key=lambda p: -p.shard if descending else p.shard)
    lengths = [np.diff(piece.answer[0]).astype(np.int64) for piece in pieces]
    counts = np.zeros(size, np.int64)
    for piece, length in zip(pieces, lengths, strict=True):
        counts[piece.queries] += length
    offsets = np.zeros(size + 1, np.uint64)
    np.cumsum(counts, out=offsets[1:].view(np.int64))
    rows = np.empty(int(offsets[-1]), np.uint64)
    place = np.empty(len(rows), np.int64)  # of each shard's rows, shard after shard, in the result
    at = offsets[:-1].astype(np.int64)
    done = 0
    for piece, length in zip(pieces, lengths, strict=True):
        inner = np.arange(int(length.sum()), dtype=np.int64) - np.repeat(np.cumsum(length) - length, length)
        to = np.repeat(at[piece.queries], length) + inner
        rows[to] = wide(piece.shard, piece.answer[1])
        place[done : done + len(to)] = to
        done += len(to)
        at[piece.queries] += length
    order = np.empty(len(rows), np.int64)
    order[place] = np.arange(len(rows))
    keys = _gathered([piece.answer[2] for piece in pieces], order)
    primary_keys = _gathered([piece.answer[3] for piece in pieces], order)
    names = pieces[0].answer[5] if pieces else {}
    columns = {name: _gathered([piece.answer[5][name] for piece in pieces], order) for name in names}
    return FindResult(offsets, rows, generation, keys, primary_keys, columns=columns)


def _gathered(columns: list[pa.Array | None], order: npt.NDArray[np.int64]) -> pa.Array | None:
    there = [column for column in columns if column is not None]
    if not there or len(there) != len(columns):
        return None
    return (there[0] if len(there) == 1 else pa.concat_arrays(there)).take(pa.array(order))


def merged_by_key(matches: FindResult, physical: Any, descending: bool, limit: int | None) -> FindResult:
    """At most `limit` rows of each query, in key order; the input has them shard after shard.

    physical: the physical keys, numbers or bytes, which have the order of the keys.
    """
    query = np.repeat(np.arange(len(matches), dtype=np.uint32), np.diff(matches.offsets).astype(np.int64))
    direction = "descending" if descending else "ascending"
    table = pa.table({"query": query, "key": physical, "shard": matches.row_ids >> np.uint64(32)})
    # Stable: the rows that one shard has for a key stay in order.
    order = pc.sort_indices(table, sort_keys=[("query", "ascending"), ("key", direction), ("shard", direction)]).to_numpy()
    offsets = matches.offsets
    if limit is not None:
        rank = np.arange(len(order), dtype=np.int64) - np.repeat(offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64))
        order = order[rank < limit]
        offsets = np.concatenate([[0], np.cumsum(np.minimum(np.diff(offsets), np.uint64(limit)))]).astype(np.uint64)
    at = pa.array(order)
    return FindResult(
        offsets,
        matches.row_ids[order],
        matches.generation,
        None if matches.keys is None else matches.keys.take(at),
        None if matches.primary_keys is None else matches.primary_keys.take(at),
        columns={name: column.take(at) for name, column in matches.columns.items()},
    )
