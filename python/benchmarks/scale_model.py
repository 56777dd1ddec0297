"""Predicts the performance of an index on a Ray cluster of 10 to 1,000 hosts, from parts that are measured on
one machine.

    python scale_model.py measure DATABASE > parts.json      of `cairn demo`; needs Ray
    python scale_model.py predict parts.json [--hosts=10,100] [--batches=1,1000] [--mode=key_range] [--load=0.5]

docs/internals/scale-model.md lists the assumptions and the predictions.
"""

import argparse
import json
import math
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_DRAWS = 20_000


@dataclass(frozen=True)
class Parts:
    """The times of the parts of a batch in seconds, as measured; and two parameters of the network, which are
    not measured.
    """

    client_fixed: float  # of a client per batch: routing, and combining results
    client_query: float  # of a client per query
    # of a client per call of an actor: sending it and receiving its result, with many calls at a time
    client_call: float
    byte: float  # per byte of keys or results, through Ray on one machine
    search: dict[str, float]  # of a host: a batch of this many queries (the size as text) in one shard, one thread
    calls: list[float] = field(default_factory=list)  # of single empty calls, round trip: a sample, ascending
    key_bytes: int = 8
    answer_bytes: int = 4
    network_byte: float = 8 / 25e9  # 25 Gbit/s
    network_trip: float = 50e-6  # round trip

    def search_time(self, queries: float) -> float:
        """The search time of a batch of any size. Between measured sizes, it is interpolated by logarithms;
        beyond them, the last one's rate is used.
        """
        if queries <= 0:
            return 0.0
        sizes = sorted((int(size), taken) for size, taken in self.search.items())
        if queries >= sizes[-1][0]:
            return sizes[-1][1] * queries / sizes[-1][0]
        at = np.interp(math.log(max(queries, sizes[0][0])), [math.log(s) for s, _ in sizes], [math.log(t) for _, t in sizes])
        return math.exp(float(at))


@dataclass(frozen=True)
class Prediction:
    hosts: int
    batch: int
    fan_out: float  # hosts that a batch reaches
    client_rate: float  # queries per second that one client can send
    host_rate: float  # queries per second that all hosts can execute
    clients: float  # the number that keeps the hosts busy
    quiet: tuple[float, float, float]  # response time without other load: the median, p99, p99.9
    loaded: tuple[float, float, float]  # the same if hosts are busy for the given share of their time


def fan_out(hosts: int, batch: int, mode: str) -> float:
    """The mean number of hosts that a batch of random keys reaches."""
    if mode == "source":
        return float(hosts)
    return hosts * -math.expm1(batch * math.log1p(-1 / hosts)) if hosts > 1 else 1.0


def slowest_of(draws: Floats, number: float, uniform: Floats) -> Floats:
    """The distribution of the slowest of `number` independent draws from a sample, as a sample: by F(t)^number,
    at uniform numbers.
    """
    return np.quantile(draws, uniform ** (1 / max(1.0, number)))


def predict(parts: Parts, hosts: int, batch: int, *, mode: str = "key_range", threads: int = 16, load: float = 0.5, seed: int = 1) -> Prediction:
    """Predicts hosts with one shard each, which search with `threads` threads, for batches of random keys.

    load: the share of the hosts' time that all clients together take.
    """
    if hosts < 1 or batch < 1 or not 0 <= load < 1 or mode not in ("key_range", "source"):
        raise ValueError("expected hosts and a batch from 1, a load from 0 to below 1, the mode 'key_range' or 'source'")
    random = np.random.default_rng(seed)
    asked = fan_out(hosts, batch, mode)
    part = batch / asked if mode == "key_range" else float(batch)
    sent = batch if mode == "key_range" else batch * hosts  # queries that are sent to all hosts together
    size = parts.key_bytes + parts.answer_bytes
    client = parts.client_fixed + parts.client_query * sent + parts.client_call * asked + parts.network_byte * size * sent
    service = parts.search_time(part) + parts.byte * size * part
    # The time that a call keeps a host busy: its threads search in parallel, and its interpreter takes one call at a
    # time.
    busy = max(service / threads, parts.client_call)
    # The mean wait for one server with Poisson arrivals whose times vary by half (Pollaczek and Khinchine).
    wait = 0.75 * busy * load / (1 - load)
    calls = np.quantile(np.asarray(parts.calls), random.random(_DRAWS))
    single = calls + service + parts.network_trip + parts.network_byte * size * part
    # The share `load` of calls waits; their waits are exponentially distributed.
    waiting = np.where(random.random(_DRAWS) < load, random.exponential(wait / load if load > 0 else 0.0, _DRAWS), 0.0)
    uniform = random.random(_DRAWS)
    responses = [client + slowest_of(sample, asked, uniform) for sample in (single, single + waiting)]
    quiet, loaded = (tuple(float(np.quantile(r, q)) for q in (0.5, 0.99, 0.999)) for r in responses)
    host_rate = batch * hosts / (asked * busy)
    client_rate = batch / client
    return Prediction(hosts, batch, asked, client_rate, host_rate, load * host_rate / client_rate, quiet, loaded)  # type: ignore[arg-type]


def table(parts: Parts, hosts: list[int], batches: list[int], **options: Any) -> str:
    """A Markdown table of predictions."""
    lines = [
        "| hosts | batch | hosts asked | Mq/s a client | Mq/s all hosts | clients at the load | quiet: median, p99, p99.9 ms | at the load: median, p99, p99.9 ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for count in hosts:
        for batch in batches:
            p = predict(parts, count, batch, **options)
            times = [", ".join(f"{1e3 * t:.1f}" for t in r) for r in (p.quiet, p.loaded)]
            lines.append(
                f"| {count:,} | {batch:,} | {p.fan_out:.0f} | {p.client_rate / 1e6:.3g} | {p.host_rate / 1e6:.3g} | {p.clients:.3g} | {times[0]} | {times[1]} |"
            )
    return "\n".join(lines)


def _median(call: Callable[[], object], seconds: float = 0.3) -> float:
    """The median time of a call."""
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 1000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _slope(measure: Callable[[int], float], small: int, large: int) -> tuple[float, float]:
    """The fixed time, and the time per unit."""
    low, high = measure(small), measure(large)
    each = max(0.0, (high - low) / (large - small))
    return max(0.0, low - small * each), each


def measure(database: str) -> Parts:
    """The parts on this machine, for an index with one shard per host."""
    import cairn.ray
    import ray
    from cairn.ray import _answers, _scatter

    # Otherwise Ray's workers run at low priority.
    os.environ.setdefault("RAY_worker_niceness", "0")
    spec, hosts = "value.field('|',1):u64,cf=orders", 16
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "index"
        cairn.shards.build(database, spec, out, shards=hosts)
        view = _scatter.View(cairn.shards.ShardMap(out))
        shard = view.shard_map.open(0, threads=1)
        column = shard.scan(with_keys=True).keys
        assert column is not None
        there, random = column.to_numpy(), np.random.default_rng(1)
        most = int(cairn.open(out, calibration="none").scan(order="desc", limit=1, with_keys=True).keys[0])  # type: ignore[index]

        def client(size: int) -> float:
            keys = random.integers(0, most, size).astype(np.uint64)

            def once() -> None:
                routed = _scatter.Routed.of_keys(view, keys)
                pieces = []
                for s in routed.asked():
                    begin, columns = routed.cut([s])
                    pieces.append(_answers.Piece(s, routed.queries(s), columns["keys"].astype(np.uint32)))
                    assert begin
                _answers.first_rows(routed.size, pieces)

            return _median(once)

        client_fixed, client_query = _slope(client, 256, 1 << 18)
        search = {}
        for power in range(0, 21, 2):
            keys = random.choice(there, 1 << power)
            search[str(1 << power)] = _median(lambda keys=keys: shard.find_first(keys))  # type: ignore[misc]
        ray.init(num_cpus=2, log_to_driver=False, logging_level="error", include_dashboard=False)

        @ray.remote
        class Echo:
            def echo(self, value: Any) -> Any:
                return value

        actor = Echo.options(max_concurrency=8).remote()  # type: ignore[attr-defined]
        for _ in range(200):
            ray.get(actor.echo.remote(1))
        calls = []
        for _ in range(3000):
            start = time.perf_counter()
            ray.get(actor.echo.remote(1))
            calls.append(time.perf_counter() - start)
        many = _median(lambda: ray.get([actor.echo.remote(1) for _ in range(200)]), 1.0) / 200

        def echoed(size: int) -> float:
            value = np.zeros(size, np.uint8)
            return _median(lambda: ray.get(actor.echo.remote(value)))

        _, both_ways = _slope(echoed, 1 << 20, 32 << 20)
        ray.shutdown()
    return Parts(client_fixed, client_query, many, both_ways / 2, search, [float(c) for c in np.quantile(calls, np.linspace(0, 1, 501))])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["measure", "predict"])
    parser.add_argument("input")
    parser.add_argument("--hosts", default="10,30,100,300,1000")
    parser.add_argument("--batches", default="1,1000,100000,1000000")
    parser.add_argument("--mode", default="key_range")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--load", type=float, default=0.5)
    options = parser.parse_args()
    if options.action == "measure":
        json.dump(asdict(measure(options.input)), sys.stdout, indent=1)
        print()
        return
    parts = Parts(**json.loads(pathlib.Path(options.input).read_text()))
    numbers = [[int(n) for n in text.split(",")] for text in (options.hosts, options.batches)]
    print(table(parts, numbers[0], numbers[1], mode=options.mode, threads=options.threads, load=options.load))


if __name__ == "__main__":
    main()
