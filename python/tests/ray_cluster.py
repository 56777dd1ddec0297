"""Shared code of the tests of cairn.ray: a cluster of three nodes on this machine, and unsharded indexes to
compare with.
"""

import contextlib
import os
import pathlib
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cairn
import numpy as np
import pytest
from conftest import load

ray = pytest.importorskip("ray", reason="Ray is not installed: the extra `ray` of python/pyproject.toml")
import cairn.ray  # noqa: E402
from ray.cluster_utils import Cluster as LocalCluster  # noqa: E402

# Otherwise Ray's workers run at low priority.
os.environ.setdefault("RAY_worker_niceness", "0")

SPEC = "value[0:8]:u64be"


@contextlib.contextmanager
def three_nodes() -> Iterator[LocalCluster]:
    """A cluster that this process is connected to."""
    local = LocalCluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        for _ in range(2):
            local.add_node(num_cpus=2)
        ray.init(address=local.address, log_to_driver=False, logging_level="error")
        yield local
    finally:
        ray.shutdown()
        local.shutdown()


def rows_of(count: int, seed: int = 0, prefix: bytes = b"") -> dict[bytes, bytes]:
    """Rows. Many share one key; the others' keys are few, many or extreme."""
    rng = random.Random(seed)
    rows = {}
    for n in range(count):
        key = rng.choice([7, 7, rng.randrange(5000), rng.randrange(5000), 0, 2**64 - 1])
        rows[prefix + b"%08d" % n] = struct.pack(">Q", key) + b"row %d" % n
    return rows


KEYS = np.concatenate([np.arange(0, 5001, 3, dtype=np.uint64), np.array([7, 2**63, 2**64 - 1, 0, 7], np.uint64)])


@dataclass
class Database:
    """A database, an unsharded index of it, and the directory of its sharded index."""

    directory: pathlib.Path
    plain: cairn.Index
    out: pathlib.Path

    def build(self, **options: Any) -> cairn.ray.BuildSummary:
        return cairn.ray.build(self.directory, SPEC, self.out, **{"shards": 5, "segments": 4} | options)

    def in_one_process(self) -> cairn.Index:
        return cairn.open(self.out, calibration="none")


def make_database(root: pathlib.Path, rows: dict[bytes, bytes]) -> Database:
    load(root / "db", rows)
    cairn.build(root / "db", {root / "plain": SPEC})
    return Database(root / "db", cairn.open(root / "plain", calibration="none"), root / "index")


def entries_of(index: cairn.Index) -> list[tuple[Any, bytes]]:
    found = index.scan(with_keys=True, primary_keys=True)
    assert found.keys is not None and found.primary_keys is not None
    return list(zip(found.keys.to_list(), found.primary_keys.to_list(), strict=True))


def check_points(cluster: cairn.ray.Cluster, plain: cairn.Index, keys: Any = KEYS) -> None:
    """Every point operation, compared with the unsharded index."""
    found, expected = cluster.find(keys, primary_keys=True), plain.find(keys, primary_keys=True)
    assert expected.primary_keys is not None
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.primary_keys.to_pylist() == expected.primary_keys.to_list()
    first, there = cluster.find_first(keys), plain.find_first(keys) != cairn.NO_ROW
    assert first.dtype == np.uint64 and ((first != cairn.NO_GLOBAL_ROW) == there).all()
    assert cluster.primary_keys(first[there], generation=found.generation).to_pylist() == [
        expected.primary_keys[int(expected.offsets[i])] for i in np.flatnonzero(there)
    ]
    assert cluster.contains(keys).tolist() == there.tolist()
    assert cluster.count(keys=keys).tolist() == plain.count(keys=keys).tolist()


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[LocalCluster]:
    with three_nodes() as local:
        yield local


@pytest.fixture
def database(local_cluster: LocalCluster, tmp_path: pathlib.Path) -> Database:
    return make_database(tmp_path, rows_of(2000))


@pytest.fixture
def opened(local_cluster: LocalCluster) -> Iterator[Callable[..., cairn.ray.Cluster]]:
    """cairn.ray.open for indexes that are shut down after the test."""
    clusters: list[cairn.ray.Cluster] = []

    def open_one(directory: pathlib.Path, **options: Any) -> cairn.ray.Cluster:
        clusters.append(cairn.ray.open(directory, **{"calibration": "none", "poll": 0, "timeout": 30} | options))
        return clusters[-1]

    yield open_one
    for cluster in clusters:
        cluster.shutdown()
