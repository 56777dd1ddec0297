"""Scans over shards: one after the other if there is a limit, merged by key if the index is sharded by source."""

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cairn.errors import Error, FailedPrecondition, InvalidArgument
from cairn.ray import _answers, _columns
from cairn.ray._answers import FindResult, Piece
from cairn.ray._scatter import Routed, View

Ask = Callable[[View, str, Routed, dict[str, Any], dict[int, Error] | None], list[Piece]]

# A cursor: the generation, the shard, and either the shard's own cursor, or, at the shard's beginning, a checksum of
# the range, the order and the spec (Scan.tag). The shard's own cursor is longer, and the shard checks it.
_CURSOR = struct.Struct("<QI")
_TAG_BYTES = 8


def generation_of(after: Sequence[bytes]) -> int | None:
    """The generation of some cursors; None if all are empty."""
    generations = set()
    for cursor in after:
        if not isinstance(cursor, bytes) or 0 < len(cursor) < _CURSOR.size:
            raise InvalidArgument("after: expected the cursors of an earlier call")
        if cursor:
            generations.add(_CURSOR.unpack_from(cursor)[0])
    if len(generations) > 1:
        raise InvalidArgument("after: expected cursors of one call, found some of several generations")
    return generations.pop() if generations else None


class Scan:
    """The arguments of one call."""

    def __init__(
        self,
        ranges: dict[str, Any],
        bounds: str,
        limit: int | None,
        descending: bool,
        with_keys: bool,
        primary_keys: bool,
        columns: list[str],
        after: list[bytes] | None,
    ) -> None:
        self._ranges, self._bounds, self._limit, self._descending = ranges, bounds, limit, descending
        self._with_keys, self._primary_keys, self._columns, self._after = with_keys, primary_keys, columns, after

    def tag(self, view: View, query: int) -> bytes:
        """A checksum of all that a cursor of this range depends on."""
        ranges = sorted((name, _value(column, query)) for name, column in self._ranges.items())
        text = repr((view.shard_map.spec, self._bounds, self._descending, ranges))
        return hashlib.blake2b(text.encode(), digest_size=_TAG_BYTES).digest()

    def _options(self, limit: int | None) -> dict[str, Any]:
        return {
            "bounds": self._bounds,
            "limit": limit,
            "order": "desc" if self._descending else "asc",
            "with_keys": self._with_keys,
            "primary_keys": self._primary_keys,
            "columns": self._columns,
        }

    def by_source(self, view: View, ask: Ask) -> FindResult:
        routed = Routed.of_ranges(view, self._ranges, self._bounds)
        options = self._options(self._limit) | {"with_keys": True}
        found = _answers.concatenated(routed.size, ask(view, "scan", routed, options, None), view.generation)
        if len(found.row_ids) > 0 and found.keys is not None:
            physical = pa.array(view.shard_map.physical_keys(found.keys))
            found = _answers.merged_by_key(found, physical, self._descending, self._limit)
        return self._finished(view, found)

    def by_key_range(self, view: View, ask: Ask) -> FindResult:
        routed = Routed.of_ranges(view, self._ranges, self._bounds)
        if self._limit is None and self._after is None:
            pieces = ask(view, "scan", routed, self._options(None), None)
            return self._finished(view, _answers.concatenated(routed.size, pieces, view.generation, self._descending))
        return self._finished(view, _Pages(self, view, routed, ask).run())

    def _finished(self, view: View, found: FindResult) -> FindResult:
        return found.as_asked(view.shard_map, self._with_keys, self._primary_keys, self._columns)


class _Pages:
    """A scan with a limit or cursors: each range queries its shards one after the other until it is full."""

    def __init__(self, scan: Scan, view: View, routed: Routed, ask: Ask) -> None:
        self._scan, self._view, self._routed, self._ask = scan, view, routed, ask
        size, shards = routed.size, len(view.shard_map)
        self._step = -1 if scan._descending else 1
        # The shards that each range has not queried yet, from `at` to `last`; none if `at` is after `last`.
        first, last = np.full(size, shards, np.int64), np.full(size, -1, np.int64)
        for shard in routed.asked():
            queries = routed.queries(shard)
            first[queries] = np.minimum(first[queries], shard)
            last[queries] = np.maximum(last[queries], shard)
        asks = last >= first
        self._at, self._last = (last, first) if scan._descending else (first, last)
        self._left = np.full(size, -1 if scan._limit is None else scan._limit, np.int64)  # -1: no limit
        self._active = asks & (self._left != 0)
        self._after = [b""] * size  # the shard's own cursor, for the next query of a shard
        self._cursors = [b""] * size
        self._pieces: list[Piece] = []
        if scan._after is not None:
            self._go_on(scan._after)

    def _go_on(self, after: list[bytes]) -> None:
        if len(after) != self._routed.size:
            raise InvalidArgument(f"after: expected {self._routed.size} cursors, one per range, found {len(after)}")
        for query, cursor in enumerate(after):
            if not cursor:
                continue
            generation, shard = _CURSOR.unpack_from(cursor)
            if generation != self._view.generation:
                raise FailedPrecondition(f"the cursors are of generation {generation}, and {self._view.generation} is in use: begin again")
            low, high = sorted((int(self._at[query]), int(self._last[query])))
            if not low <= shard <= high:
                raise InvalidArgument(f"after: cursor {query} is of another range")
            own = cursor[_CURSOR.size :]
            if len(own) <= _TAG_BYTES:
                if own != self._scan.tag(self._view, query):
                    raise InvalidArgument(f"after[{query}]: expected a cursor of the same query, got something else; start from the first page")
                own = b""
            self._at[query] = shard
            self._after[query] = own

    def run(self) -> FindResult:
        while self._active.any():
            self._round()
        found = _answers.concatenated(self._routed.size, self._pieces, self._view.generation, self._scan._descending)
        cursors = [] if self._scan._limit is None else self._cursors
        return replace(found, cursors=cursors)

    def _round(self) -> None:
        """Queries the next shard of each unfinished range. A full range checks whether there is more."""
        queries = np.flatnonzero(self._active)
        left = self._left[queries]
        limit = None if self._scan._limit is None else max(1, int(left.max()))
        for piece in self._asked(queries, limit):
            lengths = np.diff(piece.answer[0]).astype(np.int64)
            room = self._left[piece.queries] if limit is not None else lengths
            exact = (lengths <= room) | (room == 0)
            if not exact.all():
                # The result was cut at another length, so its cursor is of another entry: query again with the allowed length.
                for length in np.unique(room[~exact]):
                    for again in self._asked(piece.queries[~exact & (room == length)], int(length)):
                        self._take(again)
            self._take(_part(piece, exact))

    def _asked(self, queries: npt.NDArray[Any], limit: int | None) -> list[Piece]:
        order = np.argsort(self._at[queries], kind="stable")
        at = self._at[queries][order]
        begin = np.searchsorted(at, np.arange(len(self._view.shard_map) + 1)).astype(np.uint64)
        columns = dict(self._routed.columns)
        columns["after"] = self._after
        routed = Routed(self._routed.size, begin, queries[order], columns)
        return self._ask(self._view, "scan", routed, self._scan._options(limit), None)

    def _take(self, piece: Piece) -> None:
        lengths = np.diff(piece.answer[0]).astype(np.int64)
        own = piece.answer[4]
        full = self._left[piece.queries] == 0
        for i, query in enumerate(piece.queries.tolist()):
            self._after[query] = b""
            if full[i] and lengths[i] > 0:
                # The next page begins here.
                self._end(query, _CURSOR.pack(self._view.generation, piece.shard) + self._scan.tag(self._view, query))
            elif own and own[i] and not full[i]:
                self._end(query, _CURSOR.pack(self._view.generation, piece.shard) + own[i])
            elif self._at[query] == self._last[query]:
                self._active[query] = False
            else:
                self._at[query] += self._step
        limited = self._left[piece.queries] > 0
        self._left[piece.queries[limited]] -= lengths[limited]
        self._pieces.append(_part(piece, ~full))

    def _end(self, query: int, cursor: bytes) -> None:
        self._active[query] = False
        self._cursors[query] = cursor


def _value(column: Any, position: int) -> Any:
    """One value of a column, as a Python object."""
    if isinstance(column, tuple):
        return tuple(_value(part, position) for part in column)
    value = _columns.take(column, np.array([position]))
    return value[0] if isinstance(value, list) else value.tolist()[0]


def _part(piece: Piece, chosen: npt.NDArray[np.bool_]) -> Piece:
    """Some of a piece's queries, with their rows."""
    if chosen.all():
        return piece
    offsets, rows, keys, primary_keys, cursors, columns = piece.answer
    lengths = np.diff(offsets).astype(np.int64)
    entries = np.flatnonzero(np.repeat(chosen, lengths))
    kept = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.uint64)
    answer = (
        kept,
        rows[entries],
        _columns.take(keys, entries),
        _columns.take(primary_keys, entries),
        [cursor for cursor, keep in zip(cursors, chosen, strict=False) if keep],
        {name: _columns.take(column, entries) for name, column in columns.items()},
    )
    return Piece(piece.shard, piece.queries[chosen], answer)
