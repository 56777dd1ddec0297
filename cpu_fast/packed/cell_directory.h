#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// One cell of a CellDirectory: its separators, and the number of separators in earlier cells.
struct alignas(64) Cell {
  static constexpr size_t kSeparators = 30;

  uint32_t first;
  uint16_t separators[kSeparators];  // their steps, ascending; then all ones
};

// Maps the keys of one group of a CellDirectory to cells. The key range from `low` to `high` is
// divided into cells of equal width, and each cell into 2^16 steps. One multiplication finds both.
template <typename Key>
struct alignas(32) CellScale {
  Key low = 0;
  Key high = 0;
  uint32_t multiplier = 0;  // number of cells if high - low filled the word
  uint32_t first_cell = 0;  // index of the group's first cell among the cells of all groups
  uint32_t shift = 0;       // left shift that makes high - low fill the word

  struct Place {
    uint32_t cell;
    uint16_t step;
  };
  constexpr Key Coordinate(Key key) const {
    return static_cast<Key>((std::min(std::max(key, low), high) - low) << shift);
  }
  // The place of a key as one word: the cell in the upper half, the step in the 16 bits below.
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

// The place of a key among several groups, if group g has the keys in (bounds[g - 1], bounds[g]].
template <typename Key>
typename CellScale<Key>::Place PlaceAmong(absl::Span<const CellScale<Key>> groups,
                                          absl::Span<const Key> bounds, Key key) {
  const auto group = std::lower_bound(bounds.begin(), bounds.end(), key) - bounds.begin();
  return groups[static_cast<size_t>(group)].PlaceOf(key);
}

// A group of a directory under construction.
template <typename Key>
struct CellGroup {
  CellScale<Key> scale;
  bool exact;
  size_t end;  // past the last of its separators
};

// A directory over ascending separators. A lower bound reads one cache line: the cell of the key,
// whose separators are compared at once. Evenly distributed keys use cells of one width. Other keys
// are cut into groups, ranges of nearly evenly distributed separators, each with its own cell
// width. There are few groups, so comparing their bounds finds the group of a key. Keys that would
// need too many groups or cells are refused.
template <typename Key>
class CellDirectory {
 public:
  // Builds a directory on up to `threads` threads. Returns nullopt if there are no separators, or
  // if they descend anywhere. Also returns nullopt if they need more than about one cell per
  // kMinFill separators, one group per kMinGroup separators, or kMaxGroups groups; `exact` may
  // increase these needs. Throws std::bad_alloc.
  static std::optional<CellDirectory> Build(absl::Span<const Key> separators, bool exact,
                                            int threads);

  // With up to kFewGroups groups, all bounds are compared. With more, every kNearBounds-th bound is
  // compared first, and then the bounds next to it.
  static constexpr size_t kFewGroups = 64;
  static constexpr size_t kNearBounds = 32;
  static constexpr size_t kMaxGroups = 4096;
  // If separators may share a step, at most this many do. A search walks past them.
  static constexpr size_t kMaxTies = 5;

  // The bounds that are compared first: every kNearBounds-th one. Empty if there are only few
  // bounds.
  static AlignedBuffer<Key> FarBounds(absl::Span<const Key> bounds);

  // The place of a key.
  typename CellScale<Key>::Place PlaceOf(Key key) const {
    return PlaceAmong(groups(), bounds(), key);
  }

  // Group g has the keys in (bounds[g - 1], bounds[g]]; the last group has all keys above.
  absl::Span<const CellScale<Key>> groups() const { return groups_.span(); }
  // Followed in memory by kNearBounds readable maximum keys.
  absl::Span<const Key> bounds() const { return {bounds_.data(), groups_.size() - 1}; }
  // Every kNearBounds-th bound; empty if all bounds are compared (FarBounds).
  absl::Span<const Key> far_bounds() const { return far_bounds_.span(); }
  absl::Span<const Cell> cells() const { return cells_.span(); }
  // Whether no key is on the step of a separator less than the key.
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

  // Fills the cells of `groups`, which must cover all separators.
  static CellDirectory Fill(absl::Span<const Key> separators,
                            absl::Span<const CellGroup<Key>> groups, int threads);

  AlignedBuffer<CellScale<Key>> groups_;
  AlignedBuffer<Key> bounds_;
  AlignedBuffer<Key> far_bounds_;
  AlignedBuffer<Cell> cells_;
  bool exact_ = false;
};

}  // namespace cairn
