#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "index/aggregates/ranked_bits.h"

namespace cairn {

// COUNT(DISTINCT key) over positions of a sorted run, with two reads per range, however long it is.
// Immutable; thread-safe. Takes a quarter of a byte per entry; does not refer to the run.
class DistinctRanks {
 public:
  // Indexes the keys of `run`, on up to `threads` threads. Errors: ResourceExhausted.
  static absl::StatusOr<DistinctRanks> Build(const SortedRun& run, int threads);

  // The number of distinct keys at positions [begin, end), 0 if begin >= end. Requires that end be
  // at most the run's size.
  uint64_t Count(Position begin, Position end) const {
    if (begin >= end) return 0;
    // The key at `begin`, and each key whose first entry is after `begin`.
    return 1 + first_of_key_.Rank(end) - first_of_key_.Rank(begin + uint64_t{1});
  }
  // Counts for many ranges; all spans have the same length.
  void Count(absl::Span<const Position> begin, absl::Span<const Position> end,
             absl::Span<uint64_t> counts) const;

  uint64_t memory_bytes() const { return first_of_key_.memory_bytes(); }

 private:
  RankedBits first_of_key_;  // bit i: whether entry i is the first of its key
};

}  // namespace cairn
