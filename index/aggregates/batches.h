#pragma once

#include <algorithm>
#include <cstddef>

namespace cairn {

// The entries per task when an aggregate is built; a multiple of 64.
inline constexpr size_t kEntriesPerTask = size_t{1} << 16;

// The number of ranges whose reads, of two to six cache lines each, overlap.
inline constexpr size_t kRangesTogether = 16;

// Calls prefetch(i) and later answer(i) for each i in [0, ranges), so that the reads of several
// ranges overlap.
template <typename PrefetchRange, typename AnswerRange>
void AnswerRanges(size_t ranges, PrefetchRange prefetch, AnswerRange answer) {
  const size_t ahead = std::min(ranges, kRangesTogether);
  for (size_t i = 0; i < ahead; ++i) prefetch(i);
  for (size_t i = 0; i < ranges; ++i) {
    if (i + ahead < ranges) prefetch(i + ahead);
    answer(i);
  }
}

}  // namespace cairn
