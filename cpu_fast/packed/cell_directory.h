#pragma once

#include <algorithm>
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

// Where the keys of one group of a CellDirectory fall. The key space between `low` and `high` is
// cut into cells of one width, and each cell into 2^16 steps: a multiplication finds both.
template <typename Key>
struct alignas(32) CellScale {
  Key low = 0;
  Key high = 0;
  uint32_t multiplier = 0;  // the number of cells, if high - low filled the word
  uint32_t first_cell = 0;  // the group's first among those of all groups
  uint32_t shift = 0;       // makes high - low fill the word

  struct Place {
    uint32_t cell;
    uint16_t step;
  };
  constexpr Key Coordinate(Key key) const {
    return static_cast<Key>((std::min(std::max(key, low), high) - low) << shift);
  }
  // Where a key falls, as one word: the cell in its upper half, the step in the 16 bits below.
  constexpr uint64_t WordOf(Key key) const {
    const uint64_t origin = uint64_t{first_cell} << 32;
    if constexpr (sizeof(Key) == 4) {
      return origin + uint64_t{Coordinate(key)} * multiplier;
    } else {
      __extension__ using Product = unsigned __int128;
      return origin + static_cast<uint64_t>(Product{Coordinate(key)} * multiplier >> 32);
    }
  }
  static constexpr Place PlaceOfWord(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint16_t>(word >> 16)};
  }
  constexpr Place PlaceOf(Key key) const { return PlaceOfWord(WordOf(key)); }
};

// Where a key falls among groups, of which group g is of the keys in (bounds[g - 1], bounds[g]].
template <typename Key>
typename CellScale<Key>::Place PlaceAmong(absl::Span<const CellScale<Key>> groups,
                                          absl::Span<const Key> bounds, Key key) {
  const auto group = std::lower_bound(bounds.begin(), bounds.end(), key) - bounds.begin();
  return groups[static_cast<size_t>(group)].PlaceOf(key);
}

// A group while a directory is made.
template <typename Key>
struct CellGroup {
  CellScale<Key> scale;
  bool exact;
  size_t end;  // of its separators
};

// A directory over ascending separators that answers a lower bound by reading one cache line: the
// cell that a key falls in, whose separators are compared at once. Cells of one width suit keys
// that are spread evenly. Others are cut into groups, stretches of separators that are nearly even,
// each with cells of its own; there are so few of these that comparing their bounds finds one. Keys
// are refused whose groups would be many or their cells large.
template <typename Key>
class CellDirectory {
 public:
  // On up to `threads` threads. None where there are no separators, where they descend anywhere,
  // where more than one cell for each kMinFill separators or one group for each kMinGroup were
  // needed, or more groups than kMaxGroups, or where `exact` is required and that takes as many.
  // Throws std::bad_alloc.
  static std::optional<CellDirectory> Build(absl::Span<const Key> separators, bool exact,
                                            int threads);

  // Of so many groups all bounds are compared; of more, every kNearBounds-th and those behind it.
  static constexpr size_t kFewGroups = 64;
  static constexpr size_t kNearBounds = 32;
  static constexpr size_t kMaxGroups = 4096;
  // Where separators may share a step, at most so many do: a search walks past them.
  static constexpr size_t kMaxTies = 5;

  // The bounds between groups that are compared first.
  static AlignedBuffer<Key> FarBounds(absl::Span<const Key> bounds);

  // Where a key falls.
  typename CellScale<Key>::Place PlaceOf(Key key) const {
    return PlaceAmong(groups(), bounds(), key);
  }

  // Group g is of the keys in (bounds[g - 1], bounds[g]], the last one of all above.
  absl::Span<const CellScale<Key>> groups() const { return groups_.span(); }
  // Readable, as greatest keys, for kNearBounds behind the end.
  absl::Span<const Key> bounds() const { return {bounds_.data(), groups_.size() - 1}; }
  // Every kNearBounds-th of the bounds; none where all of few are compared (FarBounds).
  absl::Span<const Key> far_bounds() const { return far_bounds_.span(); }
  absl::Span<const Cell> cells() const { return cells_.span(); }
  // Whether no key falls on the step of a separator less than it.
  bool exact() const { return exact_; }
  uint64_t memory_bytes() const {
    return cells_.size() * sizeof(Cell) + groups_.size() * sizeof(CellScale<Key>) +
           (bounds_.size() + far_bounds_.size()) * sizeof(Key);
  }
  uint64_t huge_page_bytes() const {
    return cells_.huge_page_bytes() + groups_.huge_page_bytes() + bounds_.huge_page_bytes();
  }

 private:
  static constexpr size_t kMinFill = 5;
  static constexpr size_t kMinGroup = 64;

  // Fills the cells of groups that hold all separators.
  static CellDirectory Fill(absl::Span<const Key> separators,
                            absl::Span<const CellGroup<Key>> groups, int threads);

  AlignedBuffer<CellScale<Key>> groups_;
  AlignedBuffer<Key> bounds_;
  AlignedBuffer<Key> far_bounds_;
  AlignedBuffer<Cell> cells_;
  bool exact_ = false;
};

}  // namespace cairn
