#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "index/machine/aligned_buffer.h"
#include "index/strings/string_compare.h"

namespace cairn::bench {

// Queries that go down together.
inline constexpr size_t kPaperInFlight = 32;

// Less than 0, 0, or greater, like memcmp; eight bytes of keys of four are readable.
inline int ComparePaperKeys(const char* a, const char* b, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 8) {
    const size_t behind = i + 8 > bytes ? 8 * (i + 8 - bytes) : 0;  // bits that are not the key's
    const uint64_t x = LoadBigEndian(a + i) >> behind;
    const uint64_t y = LoadBigEndian(b + i) >> behind;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

// Slots of a page's entries: a binary search tree of all of them, blocked for cache lines (FAST,
// section 4.2). A line holds the levels that fit: 4 for entries of 4 bytes. The first block
// has the remaining levels.
class PaperPageLayout {
 public:
  // The nodes of a level, by the path to them: one bit per level, 1 to the right.
  struct Level {
    size_t SlotOf(size_t path) const {
      return first + (path >> depth) * block_slots + (path & ((size_t{1} << depth) - 1));
    }
    size_t first;
    size_t block_slots;
    int depth;  // within the block
  };

  PaperPageLayout() = default;
  // For pages of up to `entries` entries of `bytes` bytes each, a power of two.
  PaperPageLayout(size_t entries, size_t bytes) : level_count_(std::bit_width(entries)) {
    int block_levels = 1;
    while (((size_t{2} << block_levels) - 1) * bytes <= kCacheLineBytes) ++block_levels;
    const size_t block_slots = block_levels == 1 ? 1 : size_t{1} << block_levels;
    int depth = 0, depths = (level_count_ - 1) % block_levels + 1;
    for (int l = 0; l < level_count_; ++l, ++depth) {
      if (depth == depths) {  // a tier of blocks ends
        slots_ += block_slots << (l - depths);
        depth = 0;
        depths = block_levels;
      }
      levels_[l] = {slots_ + (size_t{1} << depth) - 1, block_slots, depth};
    }
    slots_ += block_slots << (level_count_ - depths);
  }

  size_t slots() const { return slots_; }
  size_t SlotOf(size_t rank) const {
    const int above_leaves = std::countr_zero(rank + 1);
    return levels_[level_count_ - 1 - above_leaves].SlotOf((rank + 1) >> (above_leaves + 1));
  }

  // rank[i] = the number of entries of a page that are before query i. `queries` queries go down
  // together, in the same page or each in its own. before(i, slot): whether that entry is before
  // query i; ask(i, slot) prefetches its line.
  template <typename Before, typename Ask>
  __attribute__((always_inline)) void Search(size_t queries, size_t* rank, Before before,
                                             Ask ask) const {
    std::fill_n(rank, queries, 0);
    for (int l = 0; l < level_count_; ++l) {
      const Level level = levels_[l];
      for (size_t i = 0; i < queries; ++i) {
        const bool right = before(i, level.SlotOf(rank[i]));
        rank[i] = 2 * rank[i] + static_cast<size_t>(right);
      }
      if (l + 1 == level_count_ || levels_[l + 1].depth != 0) continue;
      const Level next = levels_[l + 1];
      for (size_t i = 0; i < queries; ++i) ask(i, next.SlotOf(rank[i]));
    }
  }

 private:
  int level_count_ = 0;
  size_t slots_ = 0;
  std::array<Level, 32> levels_{};
};

}  // namespace cairn::bench
