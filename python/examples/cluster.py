# %% [markdown]
# # An index on a cluster
# Builds one sharded index on a Ray cluster, opens it there, and queries it in batches. The arguments are directories of
# databases: one is cut into equal ranges of keys; of several, each is a shard. Without a cluster (RAY_ADDRESS), three
# nodes are started on this machine.

# %%
import os
import pathlib
import sys
import tempfile
import time

import cairn
import cairn.ray
import numpy as np
import pyarrow as pa
import ray

DATABASES = sys.argv[1:] or [os.environ["CAIRN_DEMO"]]
OUT = pathlib.Path(os.environ.get("CAIRN_INDEXES") or tempfile.mkdtemp()) / "customers"

if "RAY_ADDRESS" in os.environ:
    local = None
    ray.init(log_to_driver=False)
else:
    from ray.cluster_utils import Cluster

    local = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    for _ in range(2):
        local.add_node(num_cpus=2)
    ray.init(address=local.address, log_to_driver=False, logging_level="error")
print(f"{sum(node['Alive'] for node in ray.nodes())} nodes")

# %% [markdown]
# Tasks read the databases and write the shards, each attempt to a new place; the last step publishes all atomically.

# %%
start = time.perf_counter()
summary = cairn.ray.build(DATABASES, "value.field('|',1):u64,cf=orders", OUT, progress=lambda *step: print("  {}: {} of {} tasks".format(*step)))
print(f"{summary.entries:,} entries in {summary.shards} shards ({summary.mode}), {time.perf_counter() - start:.1f} s")

# %% [markdown]
# One actor per host opens that host's shards, and continues after this program ends, until `shutdown`.

# %%
cluster = cairn.ray.open(OUT)
for number, shard in enumerate(cluster.shards):
    print(f"  shard {number}: {shard['entries']:,} entries, {shard['bounds']}")

# %% [markdown]
# A batch is cut by shards, sent to their hosts, and its results are combined. Rows are 64-bit numbers: the shard, and
# the row in it.

# %%
customers = np.arange(1, 1001, dtype=np.uint64)
found = cluster.find(customers, primary_keys=True)
print(f"{len(found.row_ids):,} orders of {len(customers):,} customers; most of one: {np.diff(found.offsets).max()}")
print(pa.table(found).slice(0, 3).to_pylist())
print("orders of customers 1 to 10, by customer:", cluster.count(keys=customers[:10]).tolist())
page = cluster.scan(5, 100, limit=3, with_keys=True)
print("the first from customer 5 on:", list(zip(page.keys.to_pylist(), page.row_ids.tolist(), strict=True)))

whole = cairn.open(OUT)
assert found.row_ids.tolist() == whole.find(customers).row_ids.tolist(), "the index opened in one process answers otherwise"
print("the same as the index opened in one process")

for size in (1, 1_000, 100_000):
    keys = np.resize(customers, size)
    times = []
    for answer in (cluster.contains, whole.contains):
        answer(keys)
        start = time.perf_counter()
        answer(keys)
        times.append(time.perf_counter() - start)
    print(f"  contains of {size:,} keys: {1e3 * times[0]:.2f} ms on the cluster, {1e3 * times[1]:.2f} ms in this process")

# %%
print("\n".join(line for line in cluster.metrics().splitlines() if line.startswith("cairn_shard_queries_total")))
cluster.shutdown()
ray.shutdown()
if local is not None:
    local.shutdown()
