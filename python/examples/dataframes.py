# %% [markdown]
# # Joins with pandas, Polars and DuckDB
# The matches of a batch are an Arrow table of query, row and primary key, without a copy. So one call of an index joins
# a data frame of keys with a database's rows, and the data frame library does the rest.

# %%
import os
import pathlib
import sys
import tempfile

import cairn
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

DATABASE = sys.argv[1] if len(sys.argv) > 1 else os.environ["CAIRN_DEMO"]
INDEXES = pathlib.Path(os.environ.get("CAIRN_INDEXES") or tempfile.mkdtemp())
cairn.build(DATABASE, {INDEXES / "orders_by_customer": "value.field('|',1):u64"}, column_family="orders")
orders = cairn.open(INDEXES / "orders_by_customer")

# %% [markdown]
# pandas: customers of a campaign, and the number of orders of each.

# %%
campaign = pd.DataFrame({"customer": np.arange(1, 2001, dtype=np.uint64), "group": np.arange(2000) % 4})
campaign["orders"] = orders.count(keys=campaign["customer"].to_numpy())
print(campaign.groupby("group")["orders"].agg(["sum", "mean", "max"]))

hits = pa.table(orders.find(campaign["customer"].to_numpy(), primary_keys=True))
joined = hits.to_pandas().join(campaign, on="query")
assert joined.groupby("customer").size().sum() == campaign["orders"].sum()

# %% [markdown]
# Polars: a Series is an Arrow array already.

# %%
frame = pl.DataFrame({"customer": pl.Series(range(1, 2001), dtype=pl.UInt64)})
matches = pl.DataFrame(orders.find(frame["customer"], primary_keys=True))
by_customer = (
    frame.with_row_index("query").join(matches, on="query").group_by("customer").len().sort("len", "customer", descending=[True, False])
)
print(by_customer.head(3))

# %% [markdown]
# DuckDB: SQL over the matches, with the rows' values fetched from the database.

# %%
fetched = pa.table(orders.fetch(DATABASE, keys=np.arange(1, 201, dtype=np.uint64)))
print(
    duckdb.sql("""
        SELECT split_part(decode(value), '|', 6) AS priority, count(*) AS orders
        FROM fetched GROUP BY priority ORDER BY orders DESC, priority LIMIT 3
    """)
)

# %% [markdown]
# The other way round: an index over a column of a table without a database.

# %%
by_key = cairn.from_arrow(fetched, "query")
print(by_key, "rows of query 7:", by_key.find(np.array([7], np.uint32))[0].tolist())
