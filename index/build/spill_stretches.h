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

// The entries of sorted runs in a spill file, cut into stretches of their common order. Each thread
// reads the runs' entries of one stretch and sorts them; the stretches are yielded in order.
// Sorting entries that are sorted in pieces takes a fraction of the time of a LoserTree over
// hundreds of runs, and runs on several threads.
template <typename Key>
class SpillStretches {
 public:
  // Cuts for up to `threads` threads and `memory` bytes; fewer threads take less memory. Returns
  // nothing if the runs do not allow it: they are too many for the memory, or their keys are too
  // long to cut at. The file and the runs must outlive the result.
  static std::optional<SpillStretches> Cut(const SpillFile& file, absl::Span<const RunOf> runs,
                                           uint64_t memory, int threads);

  // Appends all entries, ascending, to `batch`, which it flushes. Called once. Returns the first
  // error of reading or of the sink, or Cancelled. Throws std::bad_alloc.
  absl::Status Yield(EntryBatch<Key>* batch, StopFlag* stop) const;

  size_t size() const { return cuts_.size() + 1; }

 private:
  // An entry at which a stretch may begin.
  using Place = std::pair<Key, RowId>;
  class Stretch;

  SpillStretches(const SpillFile& file, absl::Span<const RunOf> runs, std::vector<Place> cuts,
                 int threads)
      : file_(file), runs_(runs), cuts_(std::move(cuts)), threads_(threads) {}

  static Place FirstOf(const SpillBlock& block, RowId base);
  static std::optional<std::vector<Place>> CutWithin(absl::Span<const RunOf> runs,
                                                     uint64_t stretch_bytes);
  // The max number of stretches in memory, including the one that is being yielded.
  static size_t InMemory(int threads) {
    return threads == 1 ? 1 : 2 * static_cast<size_t>(threads);
  }

  const SpillFile& file_;
  const absl::Span<const RunOf> runs_;
  const std::vector<Place> cuts_;  // the first entry of each stretch except the first, ascending
  const int threads_;
};

}  // namespace cairn
