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

// The part of SecondaryIndex that a Batcher needs: executing a batch and predicting its latency.
// Thread-safe.
class BatchIndex {
 public:
  virtual ~BatchIndex() = default;

  // The physical type of the keys in queries.
  virtual PhysicalType kind() const = 0;

  // Returns whether the index is sharded (sharding.h).
  virtual bool in_shards() const { return false; }

  // Executes a batch of one of the first five operations; each has a method of its own below.
  // Results are in the order of the batch. Errors: InvalidArgument if the type of the keys or the
  // size of an output does not match, for an unknown route or column, and for an invalid cursor;
  // ResourceExhausted if memory runs out.
  virtual absl::Status Execute(const Batch& batch) const = 0;

  // Sets *matches to all rows of each key.
  absl::Status Find(KeyBatch keys, FindResult* matches, const QueryOptions& options = {}) const;
  // Sets rows[i] to the lowest row of keys[i], or to kNoGlobalRow.
  absl::Status FindFirst(KeyBatch keys, absl::Span<GlobalRowId> rows,
                         const QueryOptions& options = {}) const;
  // Sets found[i] to whether any row has keys[i].
  absl::Status Contains(KeyBatch keys, absl::Span<bool> found,
                        const QueryOptions& options = {}) const;
  // Sets counts[i] to the number of entries in range i.
  absl::Status Count(const RangeBatch& ranges, absl::Span<uint64_t> counts,
                     const QueryOptions& options = {}) const;
  // Sets *matches to the rows of each range in (key, primary key) order, ascending or descending.
  // With a limit, matches->cursors are the positions to continue after (RangeBatch::after).
  absl::Status Scan(const RangeBatch& ranges, FindResult* matches,
                    const QueryOptions& options = {}) const;

  // Returns the predicted latency of a batch of `queries` queries on the route that the router
  // would choose. 0 with Calibration::kNone.
  virtual absl::Duration PredictedTime(Operation operation, size_t queries) const = 0;
  // Returns the smallest batch, in queries, whose predicted throughput is at least 90% of the
  // maximum. Larger batches gain little. 1 with Calibration::kNone.
  virtual size_t BestBatch(Operation operation) const = 0;
};

}  // namespace cairn
