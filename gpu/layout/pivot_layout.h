#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// The layout of a pivot tree over sorted entries: a buffer with the pivots that a K-ary search (K =
// kFanOut) visits, level by level from the root. The entries below stay unchanged and are divided
// into partitions of equal size. A node is K - 1 pivots with K children; there are no pointers.
// Arithmetic only: no memory.
//
// After Henneberg and Schuhknecht, "Is Binary Search Really All You Need?" (2025), sections 3.3 to
// 3.5, and 4.5 for trees with fewer levels and larger partitions. Pivot s of a node is the last key
// of its child s. If no entries follow that child, the pivot is padding: the maximum possible key.
// So the number of pivots less than a key always identifies an existing child.
//
// Levels are numbered from the root (0).
template <int kFanOut>
class PivotLayout {
  static_assert(kFanOut >= 2);

 public:
  static constexpr uint32_t kNodeKeys = kFanOut - 1;
  static constexpr int kMaxLevels = 32;

  // With `levels` levels, but at most FullLevels(), over at most kMaxEntries entries.
  constexpr PivotLayout(uint64_t entries, int levels) : entries_(entries) {
    const int full = FullLevels(entries);
    levels_ = levels < full ? levels : full;
    for (int i = levels_; i < full; ++i) blocks_ *= kFanOut;
    // From the last level upward.
    uint64_t below = partitions();
    for (int level = levels_ - 1; level >= 0; --level) {
      below = (below + kFanOut - 1) / kFanOut;
      first_node_[level + 1] = below;
    }
    for (int level = 0; level < levels_; ++level) first_node_[level + 1] += first_node_[level];
  }
  constexpr PivotLayout() : PivotLayout(0, 0) {}

  // Levels of a tree whose partitions are no larger than a node.
  static constexpr int FullLevels(uint64_t entries) {
    int levels = 0;
    uint64_t power = 1;
    for (; power * kNodeKeys < entries; power *= kFanOut) ++levels;
    return levels;
  }

  constexpr uint64_t entries() const { return entries_; }
  constexpr int levels() const { return levels_; }
  // Entries per partition, and blocks of kNodeKeys per partition.
  constexpr uint64_t partition_entries() const { return blocks_ * kNodeKeys; }
  constexpr uint64_t partition_blocks() const { return blocks_; }
  constexpr uint64_t partitions() const {
    return (entries_ + partition_entries() - 1) / partition_entries();
  }
  constexpr size_t nodes(int level) const { return first_node_[level + 1] - first_node_[level]; }
  // The number of the first node of a level among all nodes, also for the level past the last.
  constexpr size_t first_node(int level) const { return first_node_[level]; }
  constexpr size_t slots() const { return first_node_[levels_] * kNodeKeys; }

  // The entry whose key is in a slot of the buffer, or entries() if the slot is padding.
  constexpr uint64_t EntryOfSlot(uint64_t slot) const {
    int level = 0;
    while (first_node_[level + 1] * kNodeKeys <= slot) ++level;
    const uint64_t i = slot - first_node_[level] * kNodeKeys;
    uint64_t child_entries = partition_entries();
    for (int below = levels_ - 1; below > level; --below) child_entries *= kFanOut;
    const uint64_t behind = child_entries * (1 + i + i / kNodeKeys);
    return behind < entries_ ? behind - 1 : entries_;
  }

 private:
  uint64_t entries_;
  uint64_t blocks_ = 1;
  int levels_ = 0;
  size_t first_node_[kMaxLevels + 1] = {};
};

}  // namespace cairn
