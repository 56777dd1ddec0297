# %% [markdown]
# # Throughput and response time against batch size
# Measures every route of an index on this machine; the dotted line is the choice of the index itself.

# %%
import os
import pathlib
import sys
import tempfile

import cairn
import cairn.plot

DATABASE = sys.argv[1] if len(sys.argv) > 1 else os.environ["CAIRN_DEMO"]
INDEXES = pathlib.Path(os.environ.get("CAIRN_INDEXES") or tempfile.mkdtemp())
cairn.build(DATABASE, {INDEXES / "orders": "value.field('|',1):u64"}, column_family="orders")
index = cairn.open(INDEXES / "orders", device="auto")

# %%
figure = cairn.plot.response(index, "find_first", seconds=float(os.environ.get("CAIRN_SECONDS", "5")))
figure.savefig(INDEXES / "response.png", dpi=140)
print(INDEXES / "response.png")
