"""The actor that serves some shards of an index, one per host."""

import contextlib
import os
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cairn
import pyarrow as pa
from cairn.errors import DataLoss, Error, FailedPrecondition, NotFound
from cairn.ray import _columns, _common
from cairn.shards import ShardMap

# The number of generations that a host keeps: the newest one, and the previous one for running batches.
_KEPT = 2


class GenerationGone(FailedPrecondition):
    """A host does not have the generation that a batch names; the batch is repeated with another one."""


@dataclass
class ShardCounters:
    """Counters of a shard since its host started."""

    batches: int = 0
    queries: int = 0
    seconds: float = 0.0
    failures: int = 0


@dataclass
class Generation:
    """The open shards of one generation, and the errors of the others."""

    shard_map: ShardMap
    shards: dict[int, cairn.Index] = field(default_factory=dict)
    failures: dict[int, Error] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """How shards are distributed over hosts: host h has the shards of its block, and of the blocks before it."""

    hosts: int
    replicas: int

    def block_of(self, shard: int, shards: int) -> int:
        return shard * self.hosts // shards

    def hosts_of(self, shard: int, shards: int) -> list[int]:
        block = self.block_of(shard, shards)
        return [(block + r) % self.hosts for r in range(self.replicas)]


class Host:
    """Executes queries on the shards of one host. Methods run on several threads."""

    def __init__(self, directory: str, number: int, layout: Layout, poll: float, options: dict[str, Any]) -> None:
        self._directory, self._number, self._layout = directory, number, layout
        self._options = options
        self._lock = threading.Lock()  # guards _generations, _counters and _newest
        self._loading = threading.Lock()  # one thread loads or catches up at a time
        self._generations: dict[int, Generation] = {}
        self._counters: dict[int, ShardCounters] = {}
        self._newest = 0
        # Ray does not restart an actor whose constructor fails, so errors are raised by the first call.
        with contextlib.suppress(Error):
            self.load()
        if poll > 0:
            threading.Thread(target=self._poll, args=(poll,), daemon=True).start()

    def describe(self) -> dict[str, Any]:
        """The state by which clients check and choose a host."""
        with self._lock:
            newest = self._generations.get(self._newest)
            return {
                "version": cairn.__version__,
                "node": platform.node(),
                "pid": os.getpid(),
                "number": self._number,
                "directory": self._directory,
                "layout": self._layout,
                "generation": self._newest,
                "failures": {} if newest is None else {shard: str(error) for shard, error in newest.failures.items()},
            }

    def load(self, version: str | None = None) -> dict[str, Any]:
        """Opens the newest generation if it is not open yet, and returns the state."""
        if version is not None:
            _common.check_version(version)
        with self._loading:
            for attempt in range(10):
                shard_map = ShardMap(self._directory)
                with self._lock:
                    held = self._generations.get(shard_map.generation)
                if held is not None and not held.failures:
                    return self.describe()
                made = self._open(shard_map)
                # Another process may have published the next one, and removed this one's files.
                if not made.failures or ShardMap(self._directory).generation == shard_map.generation or attempt == 9:
                    break
            with self._lock:
                self._generations[shard_map.generation] = made
                self._newest = max(self._newest, shard_map.generation)
                for old in sorted(self._generations)[:-_KEPT]:
                    del self._generations[old]
        return self.describe()

    def _open(self, shard_map: ShardMap) -> Generation:
        made = Generation(shard_map)
        for shard, options in self._mine(shard_map).items():
            try:
                made.shards[shard] = shard_map.open(shard, **options)
            except Error as error:
                made.failures[shard] = error
        return made

    def _mine(self, shard_map: ShardMap) -> dict[int, dict[str, Any]]:
        """The options with which this host opens each of its shards: devices alternate."""
        mine = [s for s in range(len(shard_map)) if self._number in self._layout.hosts_of(s, len(shard_map))]
        common = {"host_memory_budget": _common.memory() // 2 // max(1, len(mine))} | self._options
        devices = common.pop("devices", ())
        return {shard: common | {"devices": devices[i % len(devices) :][:1] if devices else ()} for i, shard in enumerate(mine)}

    def _poll(self, seconds: float) -> None:
        while True:
            time.sleep(seconds)
            with contextlib.suppress(Error):
                with self._lock:
                    newest = self._newest
                if ShardMap(self._directory).generation > newest:
                    self.load()

    def _generation(self, number: int) -> Generation:
        with self._lock:
            generation = self._generations.get(number)
            newest = self._newest
        if generation is None:
            raise GenerationGone(f"host {self._number} ('{platform.node()}') has no generation {number} of '{self._directory}': it has {newest}")
        return generation

    def answer(
        self, version: str, generation: int, operation: str, shards: list[int], begin: list[int], columns: dict[str, Any], options: dict[str, Any]
    ) -> tuple[int, dict[int, Any], dict[int, Error]]:
        """Executes queries on one generation. Returns the newest generation, each shard's results, and each shard's error.

        Shard shards[i] executes queries begin[i] to begin[i + 1] of `columns`, which are the operation's
        arguments by name; if `begin` is empty, all of them.
        """
        _common.check_version(version)
        of = self._generation(generation)
        answers: dict[int, Any] = {}
        failures: dict[int, Error] = {}
        for i, shard in enumerate(shards):
            start = time.perf_counter()
            cut = columns if not begin else {name: _columns.part(column, begin[i], begin[i + 1]) for name, column in columns.items()}
            queries = max((_columns.size(column) for column in cut.values() if column is not None), default=1)
            try:
                if shard not in of.shards:
                    raise of.failures.get(shard) or NotFound(f"host {self._number} does not have shard {shard}")
                answers[shard] = _OPERATIONS[operation](of.shards[shard], of.shard_map, cut, options)
            except (DataLoss, NotFound) as error:
                failures[shard] = error
            with self._lock:
                counters = self._counters.setdefault(shard, ShardCounters())
                counters.batches += 1
                counters.queries += queries
                counters.seconds += time.perf_counter() - start
                counters.failures += shard in failures
        with self._lock:
            return self._newest, answers, failures

    def source_of(self, version: str, generation: int, database: str) -> list[int]:
        """The shards of this host that are of a database."""
        _common.check_version(version)
        of = self._generation(generation)
        with cairn.Snapshot(database, of.shard_map.column_family) as snapshot:
            return [s for s in of.shards if of.shard_map.shards[s]["database_id"] == snapshot.database_id]

    def catch_up(self, version: str, generation: int, shard: int, database: str, options: dict[str, Any]) -> tuple[int, int, int, int]:
        """Brings a shard up to date with a database, durably. Returns changes, rows, bytes of log, sequence number."""
        _common.check_version(version)
        with self._loading:
            report = self._generation(generation).shards[shard].catch_up(database, **options)
            return report.changes, report.rows, report.log_bytes, report.sequence

    def reopen(self, version: str, generation: int, shard: int) -> int:
        """Reopens a shard that another host has brought up to date. Returns its sequence number."""
        _common.check_version(version)
        with self._loading:
            of = self._generation(generation)
            of.shards[shard] = of.shard_map.open(shard, **self._mine(of.shard_map)[shard])
            return of.shards[shard].sequence

    def metrics(self) -> list[dict[str, Any]]:
        """One record per shard of the newest generation."""
        with self._lock:
            if self._newest == 0:
                return []
            of = self._generations[self._newest]
            counters = {shard: ShardCounters(**vars(c)) for shard, c in self._counters.items()}
        records = []
        for shard in sorted(of.shards.keys() | of.failures.keys()):
            c = counters.get(shard, ShardCounters())
            records.append(
                {
                    "host": self._number,
                    "node": platform.node(),
                    "shard": shard,
                    "generation": of.shard_map.generation,
                    "up": shard in of.shards,
                    "entries": len(of.shards[shard]) if shard in of.shards else 0,
                    "sequence": of.shards[shard].sequence if shard in of.shards else 0,
                    "batches": c.batches,
                    "queries": c.queries,
                    "seconds": c.seconds,
                    "failures": c.failures,
                }
            )
        return records


def _find_first(index: cairn.Index, _: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    return index.find_first(columns["keys"], **options)


def _contains(index: cairn.Index, _: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    return index.contains(columns["keys"], **options)


def _count(index: cairn.Index, _: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    return index.count(**columns, **options)


def _find(index: cairn.Index, _: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    found = index.find(columns["keys"], **options)
    return found.offsets, found.row_ids, None, _arrow(found.primary_keys), [], _included(found)


def _scan(index: cairn.Index, _: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    after = columns.get("after")
    ranges = {name: column for name, column in columns.items() if name != "after"}
    found = index.scan(**ranges, **options, after=after)
    return found.offsets, found.row_ids, _arrow(found.keys), _arrow(found.primary_keys), found.cursors, _included(found)


def _primary_keys(index: cairn.Index, _: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    return _arrow(index.primary_keys(columns["rows"]))


def _aggregate(index: cairn.Index, shard_map: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    return shard_map.aggregate_part(index, **columns, **options)


def _group_by(index: cairn.Index, shard_map: ShardMap, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    return shard_map.group_part(index, **columns, **options)


def _included(found: cairn.FindResult) -> dict[str, pa.Array]:
    return {name: pa.array(column.as_bytes()) for name, column in found.columns.items()}


def _arrow(column: cairn.Column | None) -> pa.Array | None:
    return None if column is None else pa.array(column.as_bytes())


# The operations of a shard of a generation.
_OPERATIONS: dict[str, Callable[[cairn.Index, ShardMap, dict[str, Any], dict[str, Any]], Any]] = {
    "find_first": _find_first,
    "contains": _contains,
    "count": _count,
    "find": _find,
    "scan": _scan,
    "primary_keys": _primary_keys,
    "aggregate": _aggregate,
    "group_by": _group_by,
}
