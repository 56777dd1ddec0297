#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/shards/shard_set.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Functions on the rows of one or several shards. All throw std::bad_alloc.

// Returns rows of an index with one shard by their 32-bit ids: a view of `rows`, or of *copy.
// OutOfRange for a row of another shard; InvalidArgument if the halves of the rows differ in size.
absl::StatusOr<absl::Span<const RowId>> RowsOfOneShard(RowSpan rows, std::vector<RowId>* copy);
// Sets (*of_shards)[s] to the rows of shard s, in the order of `rows`. Errors: those of
// RowsOfOneShard.
absl::Status GroupByShard(RowSpan rows, size_t shards, std::vector<std::vector<RowId>>* of_shards);
// The inverse of GroupByShard for the values of rows: appends the primary keys, or sets the
// columns, in the order of `rows`.
void JoinPrimaryKeys(RowSpan rows, const std::vector<StringList>& of_shards,
                     StringList* primary_keys);
void JoinColumns(RowSpan rows, const std::vector<std::vector<ColumnValues>>& of_shards,
                 std::vector<ColumnValues>* columns);

// SecondaryIndex::PrimaryKeys.
absl::Status ShardedPrimaryKeys(const ShardVersions& versions, RowSpan rows,
                                StringList* primary_keys);

// SecondaryIndex::Columns.
absl::Status ShardedColumns(const ShardVersions& versions, RowSpan rows,
                            absl::Span<const std::string> names,
                            std::vector<ColumnValues>* columns);

// Reads the rows of `matches`, the result of `ranges` at these versions, from `source`, as
// FetchRows does for one version.
absl::Status FetchShardedRows(const ShardVersions& versions, const SnapshotSource& source,
                              const RangeBatch& ranges, const FindResult& matches,
                              const StopCondition& stop, FetchResult* rows);

}  // namespace cairn
