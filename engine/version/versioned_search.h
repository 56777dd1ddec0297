#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/delta/delta.h"

namespace cairn {

// What answers for a base's entries alone: routes, or an ordered index. Thread-safe.
class BaseSearch {
 public:
  virtual ~BaseSearch() = default;

  // As SecondaryIndex's, over the base's run.
  virtual absl::Status FindFirst(KeyBatch keys, const QueryOptions& options,
                                 absl::Span<RowId> row_ids) const = 0;
  virtual absl::Status Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const = 0;
  // The positions [begin[i], end[i]) of range i in the base's run; begin[i] <= end[i].
  virtual absl::Status Positions(const RangeBatch& ranges, const QueryOptions& options,
                                 absl::Span<Position> begin, absl::Span<Position> end) const = 0;
};

// Answers for a version: what SecondaryIndex's methods of these names do, cursors included, over
// the base's entries and those of a delta together. Both must outlive it. Thread-safe.
//
// A point's key is first looked up in the delta's filter: where it is not there, the base's answer
// stands. So a batch costs what the base takes for it, a word in a cache for each key, and a search
// of the delta's few segments for the keys that it may have touched. Count takes the places of each
// range's ends in every run, and the number of removed entries before each of these (PositionSet).
class VersionedSearch {
 public:
  VersionedSearch(const Delta& delta, const BaseSearch& base, const Parallelism& parallelism = {})
      : delta_(delta), base_(base), parallelism_(parallelism) {}

  absl::Status FindFirst(KeyBatch keys, const QueryOptions& options,
                         absl::Span<RowId> row_ids) const;
  absl::Status Contains(KeyBatch keys, const QueryOptions& options, absl::Span<bool> found) const;
  absl::Status Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const;
  absl::Status Count(const RangeBatch& ranges, const QueryOptions& options,
                     absl::Span<uint64_t> counts) const;
  absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options, Matches* matches) const;

 private:
  const Delta& delta_;
  const BaseSearch& base_;
  const Parallelism parallelism_;
};

}  // namespace cairn
