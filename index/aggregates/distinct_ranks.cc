#include "index/aggregates/distinct_ranks.h"

#include <algorithm>

#include "index/aggregates/batches.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"

namespace cairn {
namespace {

// Reports for each entry whether it is the first of its key. key(i) is the key at position i.
template <typename KeyAt>
RankedBits FirstOfKeys(size_t entries, int threads, KeyAt key) {
  RankedBits bits(entries);
  constexpr size_t kWordsPerTask = kEntriesPerTask / 64;
  const size_t words = (entries + 63) / 64;
  ParallelFor(threads, (words + kWordsPerTask - 1) / kWordsPerTask, [&](size_t task) {
    const size_t last = std::min(words, (task + 1) * kWordsPerTask);
    for (size_t w = task * kWordsPerTask; w < last; ++w) {
      const size_t end = std::min(entries, w * 64 + 64);
      uint64_t word = 0;
      for (size_t i = w * 64; i < end; ++i) {
        word |= static_cast<uint64_t>(i == 0 || key(i) != key(i - 1)) << i % 64;
      }
      bits.SetWord(w, word);
    }
  });
  bits.Finish();
  return bits;
}

}  // namespace

absl::StatusOr<DistinctRanks> DistinctRanks::Build(const SortedRun& run, int threads) try {
  DistinctRanks ranks;
  switch (run.kind()) {
    case PhysicalType::kU32:
      ranks.first_of_key_ =
          FirstOfKeys(run.size(), threads, [&](size_t i) { return run.u32()[i]; });
      break;
    case PhysicalType::kU64:
      ranks.first_of_key_ =
          FirstOfKeys(run.size(), threads, [&](size_t i) { return run.u64()[i]; });
      break;
    case PhysicalType::kBytes:
      ranks.first_of_key_ =
          FirstOfKeys(run.size(), threads, [&](size_t i) { return run.bytes()[i]; });
      break;
  }
  return ranks;
} catch (...) {
  return StatusOfException("counting distinct keys");
}

void DistinctRanks::Count(absl::Span<const Position> begin, absl::Span<const Position> end,
                          absl::Span<uint64_t> counts) const {
  AnswerRanges(
      begin.size(),
      [&](size_t i) {
        first_of_key_.PrefetchRank(begin[i]);
        first_of_key_.PrefetchRank(end[i]);
      },
      [&](size_t i) { counts[i] = Count(begin[i], end[i]); });
}

}  // namespace cairn
