"""The cost of a batch on a Ray cluster on this machine, compared with the same index in this process; and
builds on 1 and 2 cores.

    python cluster.py DATABASE [--hosts=3] [--builds] [--seconds=0.4]

DATABASE: of `cairn demo`; its column family orders is indexed. Rows of the first table: batch size,
    microseconds per batch in this process and on the cluster (medians), million queries per second, and the
    share of the cluster's time that is not spent in the index. Rows of the second table: cores, seconds of each
    step, and the efficiency relative to one core.
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import cairn
import cairn.ray
import numpy as np
import ray
from ray.cluster_utils import Cluster

# Unless configured before it starts, Ray runs its workers at low priority (niceness 15).
os.environ.setdefault("RAY_worker_niceness", "0")

SPEC = "value.field('|',1):u64,cf=orders"
ASKED = {"rows": "count", "keys": "count_distinct"}
QUESTIONS: dict[str, Callable[[Any, Any], object]] = {
    "find_first": lambda index, keys: index.find_first(keys),
    "find": lambda index, keys: index.find(keys),
    "aggregate": lambda index, keys: index.aggregate(ASKED, keys, keys + np.uint64(1000)),
}


def median_time(call: Callable[[], object], seconds: float) -> float:
    call()
    times: list[float] = []
    while len(times) < 5 or (sum(times) < seconds and len(times) < 400):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def serve(out: pathlib.Path, hosts: int, seconds: float) -> None:
    local = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(hosts - 1):
        local.add_node(num_cpus=1)
    ray.init(address=local.address, log_to_driver=False, logging_level="error")
    cluster, index = cairn.ray.open(out, hosts=hosts, poll=0), cairn.open(out)
    rng = np.random.default_rng(1)
    most = int(index.scan(order="desc", limit=1, with_keys=True).keys[0])
    print(f"{len(index):,} entries in {len(cluster.shards)} shards, {hosts} hosts")
    for name, ask in QUESTIONS.items():
        print(f"{name}: batch, us in process, us on the cluster, Mq/s in process, Mq/s on the cluster, ratio")
        for power in range(0, 21, 2):
            keys = rng.integers(0, most, 1 << power).astype(np.uint64)
            calls = [lambda: ask(index, keys), lambda: ask(cluster, keys)]
            # Alternates, so that other load of the machine affects both.
            rounds = [[median_time(call, seconds / 3) for call in calls] for _ in range(3)]
            inside, outside = (statistics.median(r[i] for r in rounds) for i in (0, 1))
            print(f"  {1 << power:>8} {inside * 1e6:>10.1f} {outside * 1e6:>10.1f} {(1 << power) / inside / 1e6:>8.3f} {(1 << power) / outside / 1e6:>8.3f} {outside / inside:>8.1f}")
    cluster.shutdown()
    ray.shutdown()
    local.shutdown()


def builds(database: str, root: pathlib.Path) -> None:
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(3):
        for cores in (1, 2):
            ray.init(num_cpus=cores, log_to_driver=False, logging_level="error", include_dashboard=False)
            # Starts workers that have loaded everything.
            cairn.ray.build(database, SPEC, root / f"warm{cores}", shards=2, segments=2)
            start = time.perf_counter()
            summary: Any = cairn.ray.build(database, SPEC, root / f"built{cores}.{turn}", shards=4, segments=8)
            seconds[cores].append(time.perf_counter() - start)
            steps = ", ".join(f"{step} {s:.2f}" for step, s in summary.seconds.items())
            print(f"{cores} cores: {seconds[cores][-1]:.2f} s ({steps}), {summary.entries:,} entries", flush=True)
            ray.shutdown()
    one, two = statistics.median(seconds[1]), statistics.median(seconds[2])
    pairs = statistics.median(a / b / 2 for a, b in zip(seconds[1], seconds[2], strict=True))
    print(f"medians {one:.2f} s and {two:.2f} s; efficiency of two cores {pairs:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--builds", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        if options.builds:
            builds(options.database, root)
        else:
            cairn.shards.build(options.database, SPEC, root / "index", shards=options.hosts)
            serve(root / "index", options.hosts, options.seconds)


if __name__ == "__main__":
    main()
