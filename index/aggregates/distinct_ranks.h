#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "index/aggregates/ranked_bits.h"

namespace cairn {

// COUNT(DISTINCT key) over positions of a sorted run, however many they are: two reads a range.
// Immutable; thread-safe. Takes a quarter of a byte an entry, and nothing of the run.
class DistinctRanks {
 public:
  // Of the keys of `run`, on up to `threads` threads. ResourceExhausted.
  static absl::StatusOr<DistinctRanks> Build(const SortedRun& run, int threads);

  // The number of different keys at positions [begin, end), 0 where begin >= end; requires that end
  // be at most the run's size.
  uint64_t Count(Position begin, Position end) const {
    if (begin >= end) return 0;
    // The first one, and those that begin behind it.
    return 1 + first_of_key_.Rank(end) - first_of_key_.Rank(begin + uint64_t{1});
  }
  // Likewise for many ranges; the spans are of one length.
  void Count(absl::Span<const Position> begin, absl::Span<const Position> end,
             absl::Span<uint64_t> counts) const;

  uint64_t memory_bytes() const { return first_of_key_.memory_bytes(); }

 private:
  RankedBits first_of_key_;  // bit i: whether entry i is the first of its key
};

}  // namespace cairn
