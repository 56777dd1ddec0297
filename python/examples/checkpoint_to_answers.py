# %% [markdown]
# # From a checkpoint to answers
# Builds three indexes over a checkpoint in one pass, and queries them in batches. Any directory of a database works;
# `cairn demo DIRECTORY` creates one. Pass it as the first argument, or as `CAIRN_DEMO`.

# %%
import os
import pathlib
import sys
import tempfile

import cairn
import numpy as np
import pyarrow as pa

DATABASE = sys.argv[1] if len(sys.argv) > 1 else os.environ["CAIRN_DEMO"]
INDEXES = pathlib.Path(os.environ.get("CAIRN_INDEXES") or tempfile.mkdtemp())

# %% [markdown]
# One scan of each column family; the bar is tqdm's.

# %%
for column_family, specs in {
    "customer": {"phone": "value.field('|',4):text", "nation_balance": "value.field('|',3):u8,value.field('|',5):f64"},
    "orders": {"customer": "value.field('|',1):u64"},
}.items():
    reports = cairn.build(
        DATABASE, {INDEXES / name: spec for name, spec in specs.items()}, column_family=column_family, progress=True
    )
    for directory, report in reports.items():
        print(f"{pathlib.Path(directory).name}: {report.entries:,} entries of {report.rows:,} rows")

# %% [markdown]
# Numbers are passed as NumPy arrays of exactly the key's type, and are searched in place.

# %%
orders = cairn.open(INDEXES / "customer")
customers = np.arange(1, 1001, dtype=np.uint64)
found = orders.find(customers)
print(f"{len(found.row_ids):,} orders of {len(customers):,} customers; most of one: {np.diff(found.offsets).max()}")
print(orders.explain("find", customers))

# %% [markdown]
# Text is passed as Arrow arrays; composite keys are tuples, or columns, one per part.

# %%
phones = cairn.open(INDEXES / "phone")
page = phones.scan(prefix=["25-"], limit=3, with_keys=True, primary_keys=True)
print(pa.table(page).to_pylist())
print("phones that begin with 10- to 12-:", phones.count(prefix=["10-", "11-", "12-"]).tolist())

balance = cairn.open(INDEXES / "nation_balance")
print("rich customers of nation 7:", balance.count((7, 9990.0), (7, 9999.99), bounds="[]").tolist())
print("customers by nation:", balance.count(leading=list(range(25))).tolist())

# %% [markdown]
# Whole rows are read from the database and checked against the index.

# %%
rows = phones.fetch(DATABASE, keys=page.keys.to_list())
print(rows.values[0])
print("differences from the database:", phones.verify(DATABASE))
