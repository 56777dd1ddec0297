#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"

namespace cairn {

// Row id -> the positions of the row's entries in a run: the inverse of the run's row ids.
// Immutable; every method is safe from any number of threads.
//
// Takes 4 bytes per row if no row has several entries, otherwise 4 bytes per row and 4 per entry.
class RowPositions {
 public:
  // Inverts the row ids of `run` on up to `threads` threads. Errors: DataLoss, with the position,
  // if a row id is not less than `rows`. Throws std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const RowPositions>> Build(const SortedRun& run,
                                                                   uint64_t rows, int threads);

  // The row's positions, ascending. Requires a row id less than `rows`.
  absl::Span<const Position> operator[](RowId row) const {
    if (ends_.size() == 0) {
      const Position* position = &positions_[row];
      return {position, static_cast<size_t>(*position != kNone)};
    }
    const uint32_t begin = row == 0 ? 0 : ends_[row - 1];
    return {positions_.data() + begin, ends_[row] - begin};
  }
  // If no row has several entries, the position of each row's entry, or kNone; otherwise empty.
  static constexpr Position kNone = UINT32_MAX;
  absl::Span<const Position> single() const {
    return ends_.size() == 0 ? positions_.span() : absl::Span<const Position>();
  }
  // Prefetches the cache line that operator[] reads first.
  void Prefetch(RowId row) const {
    cairn::Prefetch(ends_.size() == 0 ? &positions_[row] : ends_.data() + row);
  }

  uint64_t memory_bytes() const { return (positions_.size() + ends_.size()) * sizeof(Position); }

 private:
  // Each fills the members for its case. Single returns false if a row has several entries.
  bool Single(const SortedRun& run, uint64_t rows, int threads);
  void Several(const SortedRun& run, uint64_t rows, int threads);

  // One position per row, or kNone. If ends_ is not empty, row r's positions end at ends_[r], and
  // those of row r + 1 start there.
  AlignedBuffer<Position> positions_;
  AlignedBuffer<uint32_t> ends_;
};

}  // namespace cairn
