#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "index/build/sorted_yield.h"
#include "index/build/spill_file.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// The entries of sorted runs in a spill file, cut into stretches of their common order. A thread
// reads what the runs have of a stretch and sorts it, while others are at other stretches; they are
// yielded in their order. Sorting anew what is sorted in pieces takes a fraction of the time of
// choosing among hundreds of runs for each entry (LoserTree), and threads share it.
template <typename Key>
class SpillStretches {
 public:
  // For up to `threads` threads and `memory` bytes, of which fewer threads take less. None where
  // the runs do not allow it: too many for the memory, or with keys too long to cut at. The file
  // and the runs must outlive it.
  static std::optional<SpillStretches> Cut(const SpillFile& file, absl::Span<const RunOf> runs,
                                           uint64_t memory, int threads);

  // Appends all entries, ascending, to `batch`, which it flushes; once. Returns the first error of
  // reading or of the sink, or Cancelled. Throws std::bad_alloc.
  absl::Status Yield(EntryBatch<Key>* batch, StopFlag* stop) const;

  size_t size() const { return cuts_.size() + 1; }

 private:
  // An entry: stretches begin at some.
  using Place = std::pair<Key, RowId>;
  class Stretch;

  SpillStretches(const SpillFile& file, absl::Span<const RunOf> runs, std::vector<Place> cuts,
                 int threads)
      : file_(file), runs_(runs), cuts_(std::move(cuts)), threads_(threads) {}

  static Place FirstOf(const SpillBlock& block, RowId base);
  static std::optional<std::vector<Place>> CutWithin(absl::Span<const RunOf> runs,
                                                     uint64_t stretch_bytes);
  // How many stretches are in memory at the most, the one that is being yielded among them.
  static size_t InMemory(int threads) {
    return threads == 1 ? 1 : 2 * static_cast<size_t>(threads);
  }

  const SpillFile& file_;
  const absl::Span<const RunOf> runs_;
  const std::vector<Place> cuts_;  // where each stretch but the first begins, ascending
  const int threads_;
};

}  // namespace cairn
