#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// What answers batches and predicts how long they take: a SecondaryIndex, of which a Batcher asks
// no more than this. Thread-safe.
class BatchIndex {
 public:
  virtual ~BatchIndex() = default;

  // The kind of the keys that it is asked for.
  virtual PhysicalType kind() const = 0;

  // Whether rows are named with a shard (sharding.h): a RowId alone is then ambiguous.
  virtual bool in_shards() const { return false; }

  // Answers a batch, of one of the first five operations, which have methods of their own below.
  // With a limit, a scan's matches->cursors says where to go on (RangeBatch::after).
  virtual absl::Status Execute(const Batch& batch) const = 0;

  // All rows of each key.
  absl::Status Find(KeyBatch keys, FindResult* matches, const QueryOptions& options = {}) const;
  // The lowest row of each key, or kNoRow.
  absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids,
                         const QueryOptions& options = {}) const;
  // The same as numbers of 64 bits, or kNoGlobalRow: of every index, and the one way that an index
  // in shards (sharding.h) has besides Batch::shards. `explain` as Batch's.
  absl::Status FindFirstGlobal(KeyBatch keys, absl::Span<GlobalRowId> rows,
                               const QueryOptions& options = {}, Explain* explain = nullptr) const;
  // Whether any row has each key.
  absl::Status Contains(KeyBatch keys, absl::Span<bool> found,
                        const QueryOptions& options = {}) const;
  // The number of entries in each range.
  absl::Status Count(const RangeBatch& ranges, absl::Span<uint64_t> counts,
                     const QueryOptions& options = {}) const;
  // The rows of each range by (key, primary key), ascending or descending.
  absl::Status Scan(const RangeBatch& ranges, FindResult* matches,
                    const QueryOptions& options = {}) const;

  // The time that a batch of so many queries is predicted to take on the route that it would be
  // given, and the least batch, in queries, whose predicted throughput is nine tenths of the
  // highest: what a larger batch would gain is little. Zero and 1 under Calibration::kNone.
  virtual absl::Duration PredictedTime(Operation operation, size_t queries) const = 0;
  virtual size_t BestBatch(Operation operation) const = 0;
};

}  // namespace cairn
