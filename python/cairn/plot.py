"""Charts of an index, by matplotlib (the extra `plot`)."""

import functools
import importlib
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cairn import _cairn
from cairn.errors import Error, InvalidArgument

_LEAST_TIME = 1e-3  # small batches are repeated for this many seconds


def measure(
    index: _cairn.Index,
    operation: str = "find_first",
    *,
    keys: Any = None,
    batches: Sequence[int] | None = None,
    seconds: float = 5.0,
    seed: int = 0,
) -> dict[str, list[tuple[int, float]]]:
    """The response time of every route of an index at several batch sizes.

    operation: "find_first", "contains" or "find".
    keys: the keys of the batches, as the operation takes them: a list, or a NumPy or Arrow array. None: the
        first million of the index. Batches draw from them at random.
    batches: sizes, from 1; None: powers of four up to 4^10.
    seconds: the approximate time to spend; large batches that would exceed it are omitted.

    Returns route -> [(batch size, seconds per batch)]. The route "router" is the choice of the index itself. A
    route that cannot take a batch lacks its size.
    """
    if operation not in ("find_first", "contains", "find"):
        raise InvalidArgument(f"expected 'find_first', 'contains' or 'find', found '{operation}'")
    pool = _keys_of(index) if keys is None else keys
    if len(pool) == 0:
        raise InvalidArgument("expected an index with entries, or keys to query, found none")
    if not isinstance(pool, list) and not hasattr(pool, "take"):
        raise InvalidArgument(f"keys: expected a list, or a NumPy or Arrow array, found {type(pool).__name__}")
    sizes = list(batches) if batches is not None else [4**i for i in range(11)]
    if any(size < 1 for size in sizes):
        raise InvalidArgument(f"batches: expected sizes from 1, found {min(sizes)}")
    random = np.random.default_rng(seed)
    call: Callable[..., Any] = getattr(index, operation)
    routes = [route for route, _, _ in index.explain(operation, _pick(pool, np.zeros(1, np.int64))).candidates]
    times: dict[str, list[tuple[int, float]]] = {name: [] for name in ["router", *routes]}
    share = seconds / max(1, len(sizes) * len(times))
    for size in sizes:
        batch = _pick(pool, random.integers(0, len(pool), size))
        for name, found in times.items():
            if found and found[-1][1] * size / found[-1][0] > 4 * share:
                continue
            route = "" if name == "router" else name
            try:
                found.append((size, _time(functools.partial(call, batch, route=route), share)))
            except Error:
                continue
    return {name: found for name, found in times.items() if found}


def response(index: _cairn.Index, operation: str = "find_first", *, axes: Any = None, **options: Any) -> Any:
    """Draws throughput and response time against batch size, for every route of an index on this machine.

    axes: two axes of matplotlib to draw into; None: a new figure.
    options: those of `measure`.

    Returns the figure. Requires matplotlib.
    """
    pyplot = importlib.import_module("matplotlib.pyplot")
    times = measure(index, operation, **options)
    if axes is None:
        _, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    throughput, latency = axes
    muted = pyplot.get_cmap("viridis")
    names = [name for name in times if name != "router"]
    for i, name in enumerate([*names, "router"]):
        sizes = np.array([size for size, _ in times.get(name, [])])
        taken = np.array([seconds for _, seconds in times.get(name, [])])
        if len(sizes) == 0:
            continue
        style: dict[str, Any] = (
            {"color": "black", "linewidth": 2.2, "linestyle": (0, (1, 1.2)), "zorder": 3}
            if name == "router"
            else {"color": muted(0.9 * i / max(1, len(names))), "linewidth": 1.4}
        )
        throughput.plot(sizes, sizes / taken / 1e6, label="chosen" if name == "router" else name, **style)
        latency.plot(sizes, taken * 1e6, **style)
    for chart, title in ((throughput, "throughput, million queries per second"), (latency, "response time, us per batch")):
        chart.set(xscale="log", yscale="log", xlabel="queries per batch")
        chart.set_title(title, loc="left", fontsize=10)
        chart.grid(alpha=0.25, which="major")
        chart.spines[["top", "right"]].set_visible(False)
    throughput.legend(frameon=False, fontsize=8)
    figure = throughput.figure
    figure.suptitle(f"{operation} over {_count(len(index))} entries: {index.spec}", x=0.01, ha="left", fontsize=11)
    return figure


def _keys_of(index: _cairn.Index) -> Any:
    keys = index.scan(limit=1_000_000, with_keys=True).keys
    assert keys is not None
    return keys.to_numpy() if index.key_types[0] in ("u32", "u64") and len(index.key_types) == 1 else list(keys.to_list())


def _pick(pool: Any, numbers: Any) -> Any:
    if isinstance(pool, list):
        return [pool[i] for i in numbers]
    return pool.take(numbers)


def _time(call: Callable[[], object], share: float) -> float:
    """The median time of one call: of the calls that fit the share of time, at least three."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    calls = max(1, math.ceil(min(_LEAST_TIME, share / 8) / max(once, 1e-7)))
    taken: list[float] = []
    while len(taken) < 3 or (sum(taken) * calls < share / 2 and len(taken) < 31):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        taken.append((time.perf_counter() - start) / calls)
    return statistics.median(taken)


def _count(number: int) -> str:
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g} {suffix}"
    return str(number)
