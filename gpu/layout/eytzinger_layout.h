#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/layout/bit_width.h"

namespace cairn {

// The positions of entries in K-ary Eytzinger order, for K = kFanOut: a complete K-ary search tree,
// stored level by level, with K - 1 entries per node and a leaf level that is filled from the left.
// Slots count entries in that order, ranks in key order. Arithmetic only: no memory.
//
// After Henneberg and Schuhknecht, "Is Binary Search Really All You Need?" (2025), sections 3.2,
// 3.4 and 3.5: the rank of a slot is a formula for any number of entries, so a tree is built
// without recursion. The inverse, the slot of a rank, is not in the paper.
//
// The full levels, from 0 (the root) to levels() - 1, are called inner levels. The remaining
// entries form the leaf level, which may be empty.
template <int kFanOut>
class EytzingerLayout {
  static_assert(kFanOut >= 2);

 public:
  static constexpr uint32_t kNodeEntries = kFanOut - 1;

  // For at most kMaxEntries entries.
  constexpr explicit EytzingerLayout(uint64_t entries) : entries_(static_cast<uint32_t>(entries)) {
    uint64_t power = 1;
    for (; power * kFanOut - 1 <= entries; power *= kFanOut) ++levels_;
    inner_ = static_cast<uint32_t>(power - 1);
  }
  constexpr EytzingerLayout() : EytzingerLayout(0) {}

  constexpr uint32_t entries() const { return entries_; }
  // The number of full levels.
  constexpr int levels() const { return levels_; }
  constexpr uint32_t inner_entries() const { return inner_; }
  constexpr uint32_t leaf_entries() const { return entries_ - inner_; }
  // Slots of whole nodes; the last slots may have no entry.
  constexpr size_t slots() const {
    return (size_t{entries_} + kNodeEntries - 1) / kNodeEntries * kNodeEntries;
  }

  // The rank of the entry in a slot; requires slot < entries().
  constexpr uint32_t RankOfSlot(uint32_t slot) const {
    if (slot >= inner_) {
      const uint32_t i = slot - inner_;
      return i + i / kNodeEntries;
    }
    // power = K^l, where l counts levels upward from the last inner level (0).
    uint32_t start = 0, power = (inner_ + 1) / kFanOut;
    if constexpr (kFanOut == 2) {
      start = static_cast<uint32_t>(BitFloor(uint64_t{slot} + 1)) - 1;
      power = (inner_ + 1) / 2 / (start + 1);
    } else {
      for (; slot >= Next(start); start = Next(start)) power /= kFanOut;
    }
    const uint32_t i = slot - start;
    const uint32_t among_inner = power * (1 + i + i / kNodeEntries) - 1;
    return among_inner + LeavesBefore(among_inner + 1, 0);
  }

  // The slot of the entry with a rank; requires rank < entries().
  constexpr uint32_t SlotOfRank(uint32_t rank) const {
    // The number of lower ranks that belong to leaves if the leaf level is full.
    const uint32_t i = rank - rank / kFanOut;
    if (rank % kFanOut != kFanOut - 1 && i < leaf_entries()) return inner_ + i;
    uint32_t q = rank - std::min(i, leaf_entries());
    uint32_t start = inner_;
    do {
      start = (start + 1) / kFanOut - 1;
      if (q % kFanOut != kFanOut - 1) break;
      q /= kFanOut;
    } while (true);
    return start + q - q / kFanOut;
  }

  // The rank of a key: the number of entries less than it. `child` is the child of the last inner
  // level at which its descent ends (0 if levels() is 0), and `less` is the number of lesser
  // entries in that leaf node.
  constexpr uint32_t RankOfLeaf(uint32_t child, uint32_t less) const {
    return child + LeavesBefore(child, less);
  }

  // The first slot of the level after the one that starts at `start`.
  static constexpr uint32_t Next(uint32_t start) { return start * kFanOut + kFanOut - 1; }

 private:
  // Entries of the leaf level before entry `less` of its node `node`.
  constexpr uint32_t LeavesBefore(uint32_t node, uint32_t less) const {
    return static_cast<uint32_t>(
        std::min(uint64_t{leaf_entries()}, uint64_t{node} * kNodeEntries + less));
  }

  uint32_t entries_;
  uint32_t inner_ = 0;
  int levels_ = 0;
};

}  // namespace cairn
