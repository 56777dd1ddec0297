#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"

namespace cairn::bench {

// The units that a PaperTree is blocked for; each also has the blocking of those before it.
enum class PaperBlocking : uint8_t {
  kPage,  // subtrees that share a memory page, with all levels that fit, breadth first
  kLine,  // subtrees of 4 levels, 15 keys, that share a cache line
  kSimd,  // subtrees of 2 levels, 3 keys, that share a 4-lane register; a line holds five
};

// The tree of Kim et al., FAST (SIGMOD 2010), as in the paper, for comparison with Cairn's variant:
// a binary search tree of all of a sorted column of 32-bit keys. It is blocked hierarchically for
// pages, cache lines and SIMD (section 4.2) and built in parallel (5.1.1). A search uses one SSE
// compare, a movemask and a lookup table for two levels (5.1.2), and a software pipeline of several
// queries (5.1.3). Immutable.
//
// Differences from the paper: a line's 15 keys are padded to 64 bytes, so that no line block
// straddles two cache lines. So pages hold whole levels of lines: 8 and 16 binary levels instead of
// 10 and 19. The shallow page is the root's, not the leaves'. Only pages that a search can reach
// are stored, so that sizes other than powers of two need no padding to a perfect tree.
template <PaperBlocking kBlocking, size_t kPageBytes>
class PaperTree {
 public:
  // Builds on `threads` threads. Throws std::bad_alloc.
  PaperTree(absl::Span<const uint32_t> keys, int threads);

  // positions[i] = the number of keys less than queries[i]. kInFlight queries go down together and
  // prefetch the keys of their next comparisons; 1: one after the other, without prefetches.
  // `positions` has one element per query.
  template <size_t kInFlight>
  void LowerBound(absl::Span<const uint32_t> queries, Position* positions) const;

  uint64_t memory_bytes() const { return keys_.size() * sizeof(int32_t); }

 private:
  // In this tree's arithmetic, a node is a binary node or a line of 15 of them.
  static constexpr int kFanOutBits = kBlocking == PaperBlocking::kPage ? 1 : 4;
  static constexpr size_t kNodeKeys = (size_t{1} << kFanOutBits) - 1;
  static constexpr size_t kNodeSlots = kBlocking == PaperBlocking::kPage ? 1 : 16;
  // The nodes of the first `levels` levels of a block.
  static constexpr size_t NodesAbove(int levels) {
    return ((size_t{1} << (kFanOutBits * levels)) - 1) / kNodeKeys;
  }
  static constexpr size_t kPageSlots = kPageBytes / sizeof(int32_t);
  static constexpr int kBlockLevels = [] {
    int levels = 1;
    while (NodesAbove(levels + 1) * kNodeSlots <= kPageSlots) ++levels;
    return levels;
  }();
  static constexpr size_t kBlockSlots = NodesAbove(kBlockLevels) * kNodeSlots;
  static constexpr size_t kBlocksPerPage = kPageSlots / kBlockSlots;
  static constexpr int kBlockBits = kFanOutBits * kBlockLevels;
  static constexpr int kMaxTiers = 33 / kBlockBits + 1;

  // Blocks are in tiers: tier 0 is the root's block.
  size_t BlockSlot(int tier, size_t block) const {
    return (first_page_[tier] + block / kBlocksPerPage) * kPageSlots +
           block % kBlocksPerPage * kBlockSlots;
  }
  // Blocks of a tier that hold keys, or in which the search for a greater key ends.
  size_t Blocks(int tier) const { return (entries_ >> (kBlockBits * (tiers_ - tier))) + 1; }
  void FillBlock(absl::Span<const uint32_t> keys, int tier, size_t block);

  size_t entries_;
  int tiers_ = 0;
  int first_level_ = 0;                         // of the root's block that is not all padding
  std::array<size_t, kMaxTiers> first_page_{};  // of each tier
  AlignedBuffer<int32_t> keys_;  // the sign bit flipped, since SSE compares signed lanes
};

inline constexpr size_t kPaperPage4K = size_t{4} << 10;
inline constexpr size_t kPaperPage2M = size_t{2} << 20;

}  // namespace cairn::bench
