"""Sharded indexes on a Ray cluster: built by its workers, served by one actor per host.

    import cairn.ray, ray

    ray.init(address="auto")
    cairn.ray.build("/data/checkpoint", "value.json('/city'):text", "/shared/city", shards=16)
    cluster = cairn.ray.open("/shared/city")
    cluster.find(["Lisbon", "Oslo"], primary_keys=True).primary_keys

All hosts must see the directories of the sources and the index at the same paths. Requires Ray and pyarrow,
which the extra `ray` installs: pip install 'cairn-rocksdb[ray]'. docs/ray.md describes what happens if tasks,
actors, hosts or the driver die.
"""

try:
    import pyarrow as _pyarrow  # noqa: F401
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"cairn.ray requires the package '{error.name}', which may have no wheel for this Python: pip install 'cairn-rocksdb[ray]'",
        name=error.name,
    ) from error

from cairn.ray._answers import FindResult, Partial
from cairn.ray._build import BuildSummary, build
from cairn.ray._cluster import Cluster, open

__all__ = ["BuildSummary", "Cluster", "FindResult", "Partial", "build", "open"]
