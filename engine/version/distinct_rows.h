#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/query.h"
#include "engine/version/index_version.h"

namespace cairn {

// Returns whether a row of an index may have several keys.
bool MayHaveSeveralKeys(const IndexSpec& spec);

// Scans ranges by pages of rows. A row with several keys in a range is returned once over all
// pages, at its first occurrence in the order of the scan, and the limit counts rows. Takes time
// for the entries of a page and those between its rows. After a cursor, the first call for a base
// takes time for all of its entries (RowEntries). If a row is written between two pages, its first
// key may move, so it may be returned twice or never.
//
// `versions` are those of one index, one per shard, and `scan` executes a scan of their entries.
// `by_source`: the index is sharded by source, so shards have separate rows; otherwise a row may
// have keys in several shards. Sets the offsets, rows, shards and cursors of *matches. Throws
// std::bad_alloc.
absl::Status ScanDistinctRows(absl::Span<const std::shared_ptr<const IndexVersion>> versions,
                              bool by_source, absl::FunctionRef<absl::Status(const Batch&)> scan,
                              const RangeBatch& ranges, const QueryOptions& options,
                              FindResult* matches);

}  // namespace cairn
