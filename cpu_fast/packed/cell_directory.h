#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// One cell of a CellDirectory: the separators in it, and the number of those in earlier cells.
struct alignas(64) Cell {
  static constexpr size_t kSeparators = 30;

  uint32_t first;
  uint16_t separators[kSeparators];  // where in the cell each is, ascending; then all ones
};

// Where a key falls in a CellDirectory. The key space between `low` and `high` is cut into cells of
// one width, and each cell into 2^16 steps: a multiplication finds both.
template <typename Key>
struct CellScale {
  Key low = 0;
  Key high = 0;
  int shift = 0;            // makes high - low fill the word
  uint64_t multiplier = 0;  // the number of cells, if high - low filled it

  struct Place {
    uint32_t cell;
    uint16_t step;
  };
  constexpr Key Coordinate(Key key) const {
    const Key clamped = key < low ? low : key > high ? high : key;
    return static_cast<Key>((clamped - low) << shift);
  }
  // Where a key falls, as one word: the cell in its upper half, the step in the 16 bits below.
  constexpr uint64_t WordOf(Key key) const {
    if constexpr (sizeof(Key) == 4) {
      return uint64_t{Coordinate(key)} * multiplier;
    } else {
      __extension__ using Product = unsigned __int128;
      return static_cast<uint64_t>(Product{Coordinate(key)} * multiplier >> 32);
    }
  }
  static constexpr Place PlaceOfWord(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint16_t>(word >> 16)};
  }
  constexpr Place PlaceOf(Key key) const { return PlaceOfWord(WordOf(key)); }
  // Whether different keys between low and high fall on different steps.
  constexpr bool Exact() const {
    constexpr int kBits = static_cast<int>(sizeof(Key)) * 8 - 16;
    return shift >= kBits || multiplier >= uint64_t{1} << (kBits - shift);
  }
};

// A directory over ascending separators that answers a lower bound by reading one cache line: the
// cell that a key falls in, whose separators are compared at once. For keys that are spread evenly;
// it refuses others, for which it would be large.
template <typename Key>
class CellDirectory {
 public:
  // On up to `threads` threads. None where there are no separators, where they descend anywhere,
  // where more than one cell for each kMinFill separators were needed, or where `exact` is required
  // and that takes as many. Throws std::bad_alloc.
  static std::optional<CellDirectory> Build(absl::Span<const Key> separators, bool exact,
                                            int threads);

  const CellScale<Key>& scale() const { return scale_; }
  const Cell* cells() const { return cells_.data(); }
  uint64_t memory_bytes() const { return cells_.size() * sizeof(Cell); }
  uint64_t huge_page_bytes() const { return cells_.huge_page_bytes(); }

 private:
  static constexpr size_t kMinFill = 5;
  // Where separators may share a step, at most so many do: a search walks past them.
  static constexpr size_t kMostTies = 4;

  CellScale<Key> scale_;
  AlignedBuffer<Cell> cells_;
};

}  // namespace cairn
