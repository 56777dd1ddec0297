"""The generation of an index that its hosts serve, as one client sees it, and batches on one generation."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from cairn.errors import DataLoss, Error, Unavailable
from cairn.ray import _common
from cairn.ray._answers import Piece
from cairn.ray._host import GenerationGone, Layout
from cairn.ray._hosts import Hosts
from cairn.ray._scatter import Counters, Routed, Scatter, View
from cairn.shards import ShardMap
from ray.exceptions import RayError

Result = TypeVar("Result")


class Serving:
    """Switches to new generations, and runs batches on the current one. Thread-safe."""

    def __init__(self, directory: str, hosts: Hosts, layout: Layout, timeout: float, poll: float, needs_all: bool) -> None:
        """needs_all: it is an error if no host has opened a shard of the generation."""
        self._directory, self._hosts, self._layout = directory, hosts, layout
        self._timeout, self._poll, self._needs_all = timeout, poll, needs_all
        self.counters = Counters()
        self._scatter = Scatter(layout, hosts.actor, hosts.restart, timeout, self.counters)
        self._turns = itertools.count()
        self._lock = threading.Lock()  # guards the members below
        self._view: View | None = None
        self._noticed = 0  # the newest generation that a host has reported
        self._tried = 0.0  # the time of the last attempt to switch

    def refresh(self) -> int:
        """As Cluster.refresh."""
        deadline = time.monotonic() + self._timeout
        while True:
            described = self._hosts.ask_all("load", _common.VERSION)
            there = [d for d in described if d is not None]
            shard_map = ShardMap(self._directory)
            if there and all(d["generation"] == shard_map.generation for d in there):
                break
            if time.monotonic() > deadline:
                raise Unavailable(f"the hosts of '{self._directory}' did not open generation {shard_map.generation} in {self._timeout} s")
            time.sleep(0.05)
        failures: dict[int, Error] = {}
        for shard in range(len(shard_map)):
            of_shard = [described[h] for h in self._layout.hosts_of(shard, len(shard_map))]
            reasons = ["its host does not answer" if d is None else d["failures"].get(shard) for d in of_shard]
            if all(reason is not None for reason in reasons):
                lost = any(d is not None for d in of_shard)
                failures[shard] = (DataLoss if lost else Unavailable)(f"shard {shard} of '{self._directory}': {reasons[0]}")
        if failures and self._needs_all:
            raise next(iter(failures.values()))
        with self._lock:
            if self._view is None or self._view.generation < shard_map.generation:
                self._view = View(shard_map)
            self._noticed = max(self._noticed, self._view.generation)
            return self._view.generation

    def current(self) -> View:
        """The generation for a batch that begins now."""
        with self._lock:
            assert self._view is not None
            due = self._noticed > self._view.generation and time.monotonic() - self._tried > max(self._poll, 0.5)
            if due:
                self._tried = time.monotonic()
            view = self._view
        if due:
            # Until then, and if the switch fails, the previous one is used.
            threading.Thread(target=self._take_up, daemon=True).start()
        return view

    def _take_up(self) -> None:
        with contextlib.suppress(Error, RayError):
            self.refresh()

    def batch(self, body: Callable[[View], Result]) -> Result:
        """Runs a batch on one generation, and again on a newer one if hosts no longer have it."""
        self.counters.add("batches")
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return body(self.current())
            except GenerationGone as error:
                if time.monotonic() > deadline:
                    raise Unavailable(f"no generation was available for the duration of a batch: {error}") from error
                self.counters.add("repeated")
                self.refresh()

    def ask(self, view: View, operation: str, routed: Routed, options: dict[str, Any], missing: dict[int, Error] | None) -> list[Piece]:
        """The shards' results, as by Scatter.ask, alternating between replicas."""
        pieces, newest = self._scatter.ask(view, operation, routed, options, next(self._turns), missing)
        with self._lock:
            self._noticed = max(self._noticed, newest)
        return pieces
