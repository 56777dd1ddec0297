"""Batches that are cut into the shards' parts, sent to hosts, and sent again if hosts die."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import ray
from cairn.errors import Error, InvalidArgument, OutOfRange, Unavailable
from cairn.ray import _columns, _common
from cairn.ray._answers import Partial, Piece, Rows
from cairn.ray._host import Layout
from cairn.shards import ShardMap
from ray.exceptions import ActorDiedError, GetTimeoutError, RayActorError, RayTaskError

# With more queries than this, arguments for several hosts are put into the object store once.
_SHARED = 1 << 14
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0  # seconds between attempts


@dataclass(frozen=True)
class View:
    """The generation that a batch sees."""

    shard_map: ShardMap

    @property
    def generation(self) -> int:
        return self.shard_map.generation


class Counters:
    """Thread-safe counters by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = {"batches": 0, "retried": 0, "repeated": 0}

    def add(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counts[name] += number

    def as_dict(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


@dataclass
class Routed:
    """A batch and its shards: shard s executes the queries query_of[begin[s]:begin[s + 1]]."""

    size: int  # queries
    begin: npt.NDArray[np.uint64]  # [shards + 1]
    query_of: npt.NDArray[Any]
    columns: dict[str, Any]  # the operation's arguments, cut alike
    everything: bool = False  # every shard executes all queries
    # For operations on rows: the queries of the batch in the order in which they are sent.
    sent: list[npt.NDArray[Any]] = field(default_factory=list)

    @classmethod
    def of_keys(cls, view: View, keys: Any) -> "Routed":
        begin, query_of = view.shard_map.route_keys(keys)
        return cls(_columns.size(keys), begin, query_of, {"keys": keys}, view.shard_map.mode == "source")

    @classmethod
    def of_ranges(cls, view: View, ranges: dict[str, Any], bounds: str) -> "Routed":
        begin, query_of = view.shard_map.route_ranges(**ranges, bounds=bounds)
        size = max((_columns.size(column) for column in ranges.values()), default=1)
        return cls(size, begin, query_of, ranges, view.shard_map.mode == "source")

    def with_cursors(self, after: list[bytes] | None) -> "Routed":
        """The same ranges, resumed after their cursors."""
        if after is None:
            return self
        if len(after) != self.size:
            raise InvalidArgument(f"after: expected {self.size} cursors, one per range, found {len(after)}")
        return replace(self, columns=self.columns | {"after": after})

    @classmethod
    def of_rows(cls, view: View, rows: Rows) -> "Routed":
        shard = (rows >> np.uint64(32)).astype(np.int64)
        if len(rows) and int(shard.max()) >= len(view.shard_map):
            worst = int(np.argmax(shard))
            raise OutOfRange(f"row {int(rows[worst])} is of shard {int(shard[worst])}, expected one below {len(view.shard_map)}")
        query_of = np.argsort(shard, kind="stable")
        begin = np.searchsorted(shard[query_of], np.arange(len(view.shard_map) + 1)).astype(np.uint64)
        return cls(len(rows), begin, query_of, {"rows": rows.astype(np.uint32)})

    def queries(self, shard: int) -> npt.NDArray[Any]:
        return self.query_of[int(self.begin[shard]) : int(self.begin[shard + 1])]

    def asked(self) -> list[int]:
        """The shards that have queries."""
        return [int(s) for s in np.flatnonzero(np.diff(self.begin.astype(np.int64)))]

    def cut(self, shards: list[int]) -> tuple[list[int], dict[str, Any]]:
        """The arguments of Host.answer for some shards: the start of each shard's part, and the columns."""
        if self.everything:
            return [], self.columns
        parts = [self.queries(shard) for shard in shards]
        begin = [0, *np.cumsum([len(p) for p in parts]).tolist()]
        positions = np.concatenate(parts)
        if len(positions) == self.size and len(parts) == 1:
            return begin, self.columns
        return begin, {name: _columns.take(column, positions) for name, column in self.columns.items()}

    def partial(self, answer: Any, missing: dict[int, Error]) -> Partial[Any]:
        complete = np.ones(self.size, np.bool_)
        for shard in missing:
            complete[self.queries(shard)] = False
        return Partial(answer, complete, {shard: str(error) for shard, error in missing.items()})

    def in_order(self, pieces: list[Piece]) -> pa.Array:
        """Combines results of one value per query, each from one shard, in the order of the batch."""
        if not pieces:
            return pa.array([], pa.large_binary())
        pieces = sorted(pieces, key=lambda p: p.shard)
        place = np.empty(self.size, np.int64)
        place[np.concatenate([p.queries for p in pieces])] = np.arange(self.size)
        return pa.concat_arrays([p.answer for p in pieces]).take(pa.array(place))


class Scatter:
    """Sends parts of batches to hosts. Thread-safe."""

    def __init__(
        self, layout: Layout, actor: Callable[[int], Any], restart: Callable[[int], None], timeout: float, counters: Counters
    ) -> None:
        self._layout, self._actor, self._restart = layout, actor, restart
        self._timeout, self._counters = timeout, counters

    def ask(
        self, view: View, operation: str, routed: Routed, options: dict[str, Any], turn: int, missing: dict[int, Error] | None
    ) -> tuple[list[Piece], int]:
        """The shards' results, and the newest generation that a host has.

        turn: the replica to try first.
        missing: takes the errors of shards that do not answer; None: the first of these errors is raised.

        Raises GenerationGone.
        """
        deadline = time.monotonic() + self._timeout
        tries = dict.fromkeys(routed.asked(), 0)  # of the shards that have not answered
        errors: dict[int, Error] = {}  # the last one of each
        refused: dict[int, set[int]] = {shard: set() for shard in tries}  # hosts on which the shard failed
        pieces: list[Piece] = []
        newest = 0
        shared = None
        if routed.everything and routed.size >= _SHARED:
            shared = ray.put(routed.columns)
        wait = _FIRST_WAIT
        # If a host does not answer, there must be time for the other replicas.
        patience = self._timeout / self._layout.replicas
        while tries:
            until = min(deadline, time.monotonic() + patience)
            calls = {}
            for host, shards in self._by_host(view, tries, turn, refused).items():
                begin, columns = routed.cut(shards)
                calls[
                    self._actor(host).answer.remote(
                        _common.VERSION, view.generation, operation, shards, begin, columns if shared is None else shared, options
                    )
                ] = (host, shards)
            again = False
            for call, (host, shards) in calls.items():
                try:
                    seen, answers, failures = ray.get(call, timeout=max(0.01, until - time.monotonic()))
                except RayTaskError as error:
                    raise _common.cause_of(error) from None
                except (RayActorError, GetTimeoutError) as error:
                    again = True
                    self._counters.add("retried")
                    if isinstance(error, ActorDiedError):
                        self._restart(host)
                    for shard in shards:
                        tries[shard] += 1
                        reason = "it died" if isinstance(error, RayActorError) else f"it did not answer in {patience:g} s"
                        errors[shard] = Unavailable(f"shard {shard} cannot be queried: host {host} has it, and {reason}")
                    continue
                newest = max(newest, seen)
                for shard, answer in answers.items():
                    pieces.append(Piece(shard, routed.queries(shard), answer))
                    del tries[shard]
                for shard, failure in failures.items():
                    errors[shard] = failure
                    refused[shard].add(host)
            late = time.monotonic() > deadline
            for shard in list(tries):
                no_good = len(refused[shard]) == self._layout.replicas
                if not (no_good or late):
                    continue
                if missing is None:
                    raise errors[shard]
                missing[shard] = errors[shard]
                del tries[shard]
            if again and tries:
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
        return pieces, newest

    def _by_host(self, view: View, tries: dict[int, int], turn: int, refused: dict[int, set[int]]) -> dict[int, list[int]]:
        """Chooses hosts for the shards that have not answered, and returns the shards of each host."""
        parts: dict[int, list[int]] = {}
        for shard in sorted(tries):
            hosts = [h for h in self._layout.hosts_of(shard, len(view.shard_map)) if h not in refused[shard]]
            parts.setdefault(hosts[(turn + tries[shard]) % len(hosts)], []).append(shard)
        return parts

