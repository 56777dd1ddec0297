"""cairn.ray.open: a client of the hosts that serve a sharded index."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import cairn
import numpy as np
import ray
from cairn.errors import Error, FailedPrecondition, InvalidArgument, Unavailable, Unimplemented
from cairn.ray import _answers, _columns, _common, _metrics, _scan
from cairn.ray._answers import FindResult, Piece, Rows
from cairn.ray._host import Layout
from cairn.ray._hosts import Hosts, layout_of
from cairn.ray._scatter import Routed, View
from cairn.ray._serving import Serving
from cairn.shards import ShardMap
from ray.exceptions import RayActorError, RayTaskError

Path = str | os.PathLike[str]
OnMissing = Literal["error", "partial"]
Aggregates = Mapping[str, str | Sequence[str]]


def open(
    directory: Path,
    *,
    hosts: int | None = None,
    replicas: int | None = None,
    on_missing: OnMissing = "error",
    timeout: float = 60.0,
    poll: float = 2.0,
    threads: int = 8,
    cpus: float = 0,
    gpus: float = 0,
    **options: Any,
) -> "Cluster":
    """Opens the sharded index in `directory` on the cluster that ray.init connected to.

    If actors of an earlier call, of any driver, already serve it, this is another client of them. Otherwise
    starts one detached actor per host, which opens its shards. Actors continue after this driver ends;
    Cluster.shutdown ends them.

    hosts: the number of actors, each on its own host if there are enough hosts; None: one per host of the
        cluster.
    replicas: the number of hosts that open each shard; batches alternate between them. None: one.
    on_missing: the default for batches if a shard is missing or damaged. "error" raises DataLoss or Unavailable
        with its name; "partial" returns results without it, as Partial.
    timeout: seconds after which a batch gives up on hosts that do not answer. Queries may be repeated any
        number of times.
    poll: seconds between a host's checks for a new generation; 0: only Cluster.refresh switches to one.
    threads: the number of batches that a host executes at the same time.
    cpus, gpus: the cluster's resources for each actor.
    options: of each shard, as in cairn.open (device, devices, ordered_indexes, verify, calibration, budgets,
        threads, aggregates). A host's shards are assigned to its `devices` in turn: devices=[0, 1] with gpus=2.

    Errors: NotFound, DataLoss; FailedPrecondition if hosts have another version of cairn, or serve the index in
    another layout than requested; Unavailable.
    """
    path = os.path.realpath(os.fsdecode(directory))
    ShardMap(path)  # raises its error
    if on_missing not in ("error", "partial"):
        raise InvalidArgument(f"on_missing: expected 'error' or 'partial', found '{on_missing}'")
    running = layout_of(path, timeout)
    if running is None:
        nodes = len(_common.alive_nodes())
        layout = Layout(hosts if hosts is not None else nodes, replicas if replicas is not None else 1)
        if layout.hosts < 1 or not 1 <= layout.replicas <= layout.hosts:
            raise InvalidArgument(f"expected hosts from 1, and replicas from 1 to hosts, found {layout.hosts} and {layout.replicas}")
    else:
        layout = running
        if (hosts not in (None, layout.hosts)) or (replicas not in (None, layout.replicas)):
            raise FailedPrecondition(
                f"'{path}' is served by {layout.hosts} hosts with {layout.replicas} replicas, expected {hosts} and {replicas}: shut it down first"
            )
    actor_options = {"max_concurrency": threads + 2, "num_cpus": cpus, "num_gpus": gpus}
    return Cluster(path, layout, on_missing, timeout, poll, actor_options, options)


class Cluster:
    """A sharded index that hosts serve; the result of cairn.ray.open.

    It has the batch queries of cairn.Index, with 64-bit rows and the same forms of keys. A batch sees one
    generation of the index, on all hosts. Thread-safe. Clients switch to a new generation by `refresh`, or
    automatically once a host has seen it and all hosts have opened it. Until then they use the old one.

    A host that dies is restarted, on another machine if its own is gone. Its part of a batch is sent again, to
    another replica if there is one. After `timeout` the batch is Unavailable, with the shards' names. No result
    combines several generations.
    """

    def __init__(
        self, directory: str, layout: Layout, on_missing: OnMissing, timeout: float, poll: float, actor_options: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self._directory, self._layout = directory, layout
        self._on_missing: OnMissing = on_missing
        self._hosts = Hosts(directory, layout, timeout, poll, actor_options, options)
        self._serving = Serving(directory, self._hosts, layout, timeout, poll, needs_all=on_missing == "error")
        self._hosts.check_versions()
        self.refresh()

    # Generations.

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def generation(self) -> int:
        """The generation that executes new batches."""
        return self._serving.current().generation

    @property
    def spec(self) -> str:
        return self._serving.current().shard_map.spec

    @property
    def key_types(self) -> list[str]:
        return self._serving.current().shard_map.key_types

    @property
    def mode(self) -> str:
        """How entries are distributed: "key_range" or "source"."""
        return self._serving.current().shard_map.mode

    @property
    def shards(self) -> list[dict[str, Any]]:
        """As ShardMap.shards."""
        return self._serving.current().shard_map.shards

    def __len__(self) -> int:
        """The number of published entries."""
        return sum(int(shard["entries"]) for shard in self.shards)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        view = self._serving.current()
        return (
            f"<cairn.ray.Cluster of '{self._directory}', generation {view.generation}, {len(view.shard_map)} shards, {self._layout.hosts} hosts>"
        )

    @property
    def counters(self) -> dict[str, int]:
        """Counters of this client: batches, retried parts, batches repeated for a new generation."""
        return self._serving.counters.as_dict()

    def refresh(self) -> int:
        """Switches to the newest generation if all hosts can open it, and returns the generation for new batches.

        DataLoss, naming the shard, if one is missing or damaged (unless on_missing="partial"); Unavailable if
        hosts do not answer. Then the previous generation stays in use.
        """
        return self._serving.refresh()

    def _answer(
        self, on_missing: OnMissing | None, operation: str, route: Callable[[View], Routed], options: dict[str, Any], gather: Callable[[View, int, list[Piece]], Any]
    ) -> Any:
        partial = (on_missing or self._on_missing) == "partial"
        if on_missing not in (None, "error", "partial"):
            raise InvalidArgument(f"on_missing: expected 'error' or 'partial', found '{on_missing}'")

        def body(view: View) -> Any:
            missing: dict[int, Error] | None = {} if partial else None
            routed = route(view)
            answer = gather(view, routed.size, self._serving.ask(view, operation, routed, options, missing))
            return answer if missing is None else routed.partial(answer, missing)

        return self._serving.batch(body)

    # Queries.

    def _route_keys(self, keys: Any) -> Callable[[View], Routed]:
        columns = _columns.columns_of(keys, len(self.key_types))
        return lambda view: Routed.of_keys(view, columns)

    def find_first(self, keys: Any, *, on_missing: OnMissing | None = None) -> Any:
        """uint64[keys]: the lowest row of each key, or cairn.NO_GLOBAL_ROW."""
        return self._answer(on_missing, "find_first", self._route_keys(keys), {}, lambda _, size, pieces: _answers.first_rows(size, pieces))

    def contains(self, keys: Any, *, on_missing: OnMissing | None = None) -> Any:
        """bool[keys]: whether any row has each key."""
        return self._answer(on_missing, "contains", self._route_keys(keys), {}, lambda _, size, pieces: _answers.any_found(size, pieces))

    def find(
        self, keys: Any, *, primary_keys: bool = False, columns: Sequence[str] | None = None, on_missing: OnMissing | None = None
    ) -> Any:
        """All rows of each key, as FindResult, with primary keys and included columns if requested."""
        names = _answers.names_of(columns)

        def gather(view: View, size: int, pieces: list[Piece]) -> FindResult:
            return _answers.concatenated(size, pieces, view.generation).as_asked(view.shard_map, False, primary_keys, names)

        options = {"primary_keys": primary_keys, "columns": names}
        return self._answer(on_missing, "find", self._route_keys(keys), options, gather)

    def count(
        self,
        lower: Any = None,
        upper: Any = None,
        *,
        keys: Any = None,
        prefix: Any = None,
        leading: Any = None,
        bounds: str = "[)",
        on_missing: OnMissing | None = None,
    ) -> Any:
        """uint64[ranges]: the number of entries in each range; ranges as cairn.Index.count takes them."""
        ranges = self._ranges(lower, upper, keys, prefix, leading)
        return self._answer(
            on_missing,
            "count",
            lambda view: Routed.of_ranges(view, ranges, bounds),
            {"bounds": bounds},
            lambda _, size, pieces: _answers.sums(size, pieces),
        )

    def aggregate(
        self,
        aggregates: Aggregates,
        lower: Any = None,
        upper: Any = None,
        *,
        keys: Any = None,
        prefix: Any = None,
        leading: Any = None,
        bounds: str = "[)",
        on_missing: OnMissing | None = None,
    ) -> Any:
        """Aggregates of each range, as by cairn.Index.aggregate: a Column of structs, one row per range.

        Exact over all shards, since their intermediate results are combined before the final values. For an
        index sharded by source, "count_distinct" makes each shard send every key of the ranges once.
        """
        ranges = self._ranges(lower, upper, keys, prefix, leading)

        def route(view: View) -> Routed:
            view.shard_map.combine_aggregates(0, aggregates, [])  # raises if they are invalid
            return Routed.of_ranges(view, ranges, bounds)

        return self._answer(
            on_missing,
            "aggregate",
            route,
            {"aggregates": aggregates, "bounds": bounds},
            lambda view, size, pieces: view.shard_map.combine_aggregates(size, aggregates, _answers.parts_of(pieces)),
        )

    def group_by(
        self,
        parts: int,
        aggregates: Aggregates,
        lower: Any = None,
        upper: Any = None,
        *,
        keys: Any = None,
        prefix: Any = None,
        leading: Any = None,
        bounds: str = "[)",
        limit: int | None = None,
        after: Sequence[bytes] | None = None,
        on_missing: OnMissing | None = None,
    ) -> Any:
        """Aggregates of each range's groups, as by cairn.Index.group_by: AggregateGroupsResult.

        With a `limit`, at most `limit` groups per range, and per shard and range; `after` takes the `cursors`
        of the previous call, of any generation.
        """
        ranges = self._ranges(lower, upper, keys, prefix, leading)
        cursors = None if after is None else list(after)

        def route(view: View) -> Routed:
            view.shard_map.combine_groups(0, parts, aggregates, [], limit)  # raises if they are invalid
            return Routed.of_ranges(view, ranges, bounds).with_cursors(cursors)

        return self._answer(
            on_missing,
            "group_by",
            route,
            {"parts": parts, "aggregates": aggregates, "bounds": bounds, "limit": limit},
            lambda view, size, pieces: view.shard_map.combine_groups(size, parts, aggregates, _answers.parts_of(pieces), limit),
        )

    def scan(
        self,
        lower: Any = None,
        upper: Any = None,
        *,
        keys: Any = None,
        prefix: Any = None,
        leading: Any = None,
        bounds: str = "[)",
        limit: int | None = None,
        order: str = "asc",
        with_keys: bool = False,
        primary_keys: bool = False,
        columns: Sequence[str] | None = None,
        after: Sequence[bytes] | None = None,
    ) -> FindResult:
        """The rows of each range, by (key, source, primary key), ascending or descending ("desc").

        With a `limit`, at most `limit` entries per range. `after` takes the `cursors` of the previous call and
        continues in their generation; FailedPrecondition if that is no longer served. Only an index sharded by
        key range has cursors. A missing shard is an error.
        """
        if order not in ("asc", "desc"):
            raise InvalidArgument(f"order: expected 'asc' or 'desc', found '{order}'")
        if limit is not None and limit < 0:
            raise InvalidArgument(f"limit: expected an integer from 0, found {limit}")
        ranges = self._ranges(lower, upper, keys, prefix, leading)
        cursors = None if after is None else list(after)
        scan = _scan.Scan(ranges, bounds, limit, order == "desc", with_keys, primary_keys, _answers.names_of(columns), cursors)

        def body(view: View) -> FindResult:
            if view.shard_map.mode == "source":
                if after is not None:
                    raise Unimplemented("an index sharded by source has no cursors on a cluster: scan a narrower range")
                return scan.by_source(view, self._serving.ask)
            return scan.by_key_range(view, self._serving.ask)

        if after is not None:
            view, generation = self._serving.current(), _scan.generation_of(after)
            if generation not in (None, view.generation):
                raise FailedPrecondition(f"the cursors are of generation {generation}, and {view.generation} is in use: begin again")
        return self._serving.batch(body)

    def primary_keys(self, rows: Rows, *, generation: int | None = None) -> Any:
        """The primary key of each of uint64[rows] rows, as Arrow's large_binary.

        generation: of the result that the rows are from (FindResult.generation). FailedPrecondition if another
            one is in use, in which they would be other rows. None: not checked.
        """
        rows = np.asarray(rows)
        if rows.dtype != np.uint64 or rows.ndim != 1:
            raise cairn.KeyTypeError(f"rows: expected an array of uint64, found {rows.dtype} of {rows.ndim} dimensions")

        def body(view: View) -> Any:
            if generation not in (None, view.generation):
                raise FailedPrecondition(f"the rows are of generation {generation}, and {view.generation} is in use: query them again")
            routed = Routed.of_rows(view, rows)
            return routed.in_order(self._serving.ask(view, "primary_keys", routed, {}, None))

        return self._serving.batch(body)

    def _ranges(self, lower: Any, upper: Any, keys: Any, prefix: Any, leading: Any) -> dict[str, Any]:
        parts = len(self.key_types)
        given = {"lower": lower, "upper": upper, "keys": keys, "prefix": prefix, "leading": leading}
        return {name: _columns.columns_of(values, parts) for name, values in given.items() if values is not None}

    # Upkeep.

    def catch_up(self, database: Path, **options: Any) -> cairn.CatchUpReport | dict[str, int]:
        """Brings the shard of one database up to date with it, in an index sharded by source: durably, then on
        every replica.

        options: as in cairn.Index.catch_up. Returns counters by name. FailedPrecondition for an index sharded
            by key range (build its next generation instead), and if no shard is of that database.
        """
        view = self._serving.current()
        if view.shard_map.mode != "source":
            raise FailedPrecondition("an index sharded by key range cannot catch up: build its next generation")
        path = os.path.realpath(os.fsdecode(database))
        found = [d for d in self._hosts.ask_all("source_of", _common.VERSION, view.generation, path) if d]
        shards = sorted({shard for shard_list in found for shard in shard_list})
        if len(shards) != 1:
            raise FailedPrecondition(f"'{path}' is the database of {'no shard' if not shards else 'several shards'} of '{self._directory}'")
        shard = shards[0]
        hosts = self._layout.hosts_of(shard, len(view.shard_map))
        try:
            done = ray.get(self._hosts.actor(hosts[0]).catch_up.remote(_common.VERSION, view.generation, shard, path, options))
            ray.get([self._hosts.actor(host).reopen.remote(_common.VERSION, view.generation, shard) for host in hosts[1:]])
        except RayTaskError as error:
            raise _common.cause_of(error) from None
        except RayActorError as error:
            raise Unavailable(f"the host of shard {shard} died during catch_up: {error}") from error
        return dict(zip(("changes", "rows", "log_bytes", "sequence"), done, strict=True)) | {"shard": shard}

    def metrics(self) -> str:
        """Queries and latencies of every shard, in the text format of Prometheus."""
        return _metrics.text(self._directory, self._hosts.ask_all("metrics"), self._serving.counters.as_dict())

    def shutdown(self) -> None:
        """Ends the hosts' actors, for all clients."""
        self._hosts.shutdown()

