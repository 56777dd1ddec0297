#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/layout/bit_width.h"

namespace cairn {

// The levels of a K-ary tree over ascending separators, built bottom-up. Each node takes kFanOut -
// 1 separators, and the separator between a node and the next moves to the level above. This ends
// when at most a given number of separators are left: the top. Node `i` of a level is between
// separators i - 1 and i of the level above, and has the separators from kFanOut * i on. Its
// children are also numbered from kFanOut * i; those of level 0 are the intervals between the
// separators themselves.
template <uint32_t kFanOut>
class KaryLayout {
 public:
  static constexpr int kMaxLevels = 5;

  // For less than 2^32 separators; `top` must be at least 2^32 / kFanOut^kMaxLevels.
  constexpr KaryLayout(size_t separators, size_t top) {
    separators_[0] = separators;
    while (separators_[levels_] > top && levels_ < kMaxLevels) {
      separators_[levels_ + 1] = separators_[levels_] / kFanOut;
      ++levels_;
    }
  }
  constexpr KaryLayout() : KaryLayout(0, 0) {}

  // The top as a perfect binary tree in Eytzinger order, for a search of top_levels() steps: slot 1
  // is the root, 2 i and 2 i + 1 are the children of slot i, and slot 0 is unused. Slots without a
  // separator (TopEntry(slot) >= top()) have the maximum key.
  constexpr int top_levels() const { return BitWidth(top()); }
  constexpr size_t top_slots() const { return size_t{1} << top_levels(); }
  // The separator of the top in a slot; requires 0 < slot < top_slots().
  constexpr size_t TopEntry(size_t slot) const {
    const int depth = BitWidth(slot) - 1;
    const size_t in_level = slot - (size_t{1} << depth);
    return ((2 * in_level + 1) << (top_levels() - 1 - depth)) - 1;
  }

  // Levels of nodes, 0 is the lowest; no levels if all separators are in the top.
  constexpr int levels() const { return levels_; }
  // Separators of a level, including those that move up; separators(levels()) is the number in the
  // top.
  constexpr size_t separators(int level) const { return separators_[level]; }
  constexpr size_t top() const { return separators_[levels_]; }
  // Requires level < levels().
  constexpr size_t nodes(int level) const { return separators_[level + 1] + 1; }

  // The first separator of a node and its number of separators. The last node of a level may have
  // fewer than the others, or none.
  static constexpr size_t FirstSeparator(size_t node) { return node * kFanOut; }
  constexpr uint32_t CountSeparators(int level, size_t node) const {
    const size_t left = separators_[level] - FirstSeparator(node);
    return static_cast<uint32_t>(left < kFanOut - 1 ? left : kFanOut - 1);
  }
  // The separator of a level that becomes separator `i` of the level above.
  static constexpr size_t PassedOn(size_t i) { return i * kFanOut + kFanOut - 1; }

 private:
  int levels_ = 0;
  size_t separators_[kMaxLevels + 1] = {};
};

}  // namespace cairn
