#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// Row id -> the rank of the row's key among a run's different ones, in one byte or two: what
// RowPositions says of a run of few keys, in a quarter or half of the memory, which is what reading
// it from one end to the other costs. Immutable; safe from any number of threads.
class RowCodes {
 public:
  // Of a run of `rows` rows of which none has several entries, with row ids less than that; null
  // where it has more than kMax16 different keys. Throws std::bad_alloc.
  static std::shared_ptr<const RowCodes> Build(const SortedRun& run, uint64_t rows);

  // The code of a row without entries, in each width.
  static constexpr uint8_t kNone8 = UINT8_MAX;
  static constexpr uint16_t kNone16 = UINT16_MAX;
  static constexpr size_t kMax8 = UINT8_MAX - 1, kMax16 = UINT16_MAX - 1;

  // One a row; the one that is not in use is empty.
  absl::Span<const uint8_t> codes8() const { return codes8_.span(); }
  absl::Span<const uint16_t> codes16() const { return codes16_.span(); }
  // The number of different keys.
  size_t keys() const { return begins_.size(); }
  // The number of different keys before a position at which a key begins.
  uint32_t CodeOf(Position position) const;

 private:
  std::vector<Position> begins_;  // of each key
  AlignedBuffer<uint8_t> codes8_;
  AlignedBuffer<uint16_t> codes16_;
};

}  // namespace cairn
