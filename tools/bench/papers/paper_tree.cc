#include "tools/bench/papers/paper_tree.h"

#include <algorithm>

#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cairn::bench {
namespace {

// The contents of a node's slots: the key's rank among the node's 15, in key order, breadth
// first, or by SIMD blocks: the first three keys of the line, then its four subtrees of three.
// Slot 15 is padding.
constexpr std::array<uint8_t, 15> kBreadthFirst = {7, 3, 11, 1, 5,  9,  13, 0,
                                                   2, 4, 6,  8, 10, 12, 14};
constexpr std::array<uint8_t, 15> kSimdBlocks = {7, 3, 11, 1, 0, 2, 5, 4, 6, 9, 8, 10, 13, 12, 14};

template <PaperBlocking kBlocking>
constexpr size_t RankOfSlot(size_t slot) {
  if constexpr (kBlocking == PaperBlocking::kPage) return 0;
  return kBlocking == PaperBlocking::kLine ? kBreadthFirst[slot] : kSimdBlocks[slot];
}

constexpr int32_t Flipped(uint32_t key) {
  return static_cast<int32_t>(key ^ 0x80000000u);
}

// Bit i: whether key i of a SIMD block is less than the query. Bit 3 belongs to the next block.
inline int CompareBlock(const int32_t* block, int32_t query) {
#if defined(__SSE2__)
  const __m128i keys = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block));
  return _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32(query), keys)));
#else
  return (block[0] < query) | (block[1] < query) << 1 | (block[2] < query) << 2;
#endif
}

// The child of a SIMD block, root, left, right, by CompareBlock: figure 2 of the paper.
constexpr uint8_t kChildOf[16] = {0, 0, 1, 2, 0, 0, 0, 3, 0, 0, 1, 2, 0, 0, 0, 3};

// The child of a node that the search goes on to.
template <PaperBlocking kBlocking>
inline size_t ChildOf(const int32_t* node, int32_t query) {
  if constexpr (kBlocking == PaperBlocking::kPage) {
    return *node < query;
  } else if constexpr (kBlocking == PaperBlocking::kLine) {
    size_t i = 0;
    for (int level = 0; level < 4; ++level) i = 2 * i + 1 + (node[i] < query);
    return i - 15;
  } else {
    const size_t block = kChildOf[CompareBlock(node, query)];
    return 4 * block + kChildOf[CompareBlock(node + 3 * (block + 1), query)];
  }
}

}  // namespace

template <PaperBlocking kBlocking, size_t kPageBytes>
PaperTree<kBlocking, kPageBytes>::PaperTree(absl::Span<const uint32_t> keys, int threads)
    : entries_(keys.size()) {
  // Levels of a tree of at least keys.size() keys, filled up to whole blocks from the root on.
  const int levels = (static_cast<int>(std::bit_width(entries_)) + kFanOutBits - 1) / kFanOutBits;
  tiers_ = (levels + kBlockLevels - 1) / kBlockLevels;
  first_level_ = tiers_ * kBlockLevels - levels;
  size_t pages = 0;
  for (int tier = 0; tier < tiers_; ++tier) {
    first_page_[tier] = pages;
    pages += (Blocks(tier) + kBlocksPerPage - 1) / kBlocksPerPage;
  }
  keys_ = AlignedBuffer<int32_t>(pages * kPageSlots);
  // Threads take 2 MB of the tree at a time.
  constexpr size_t kTaskBlocks = std::max<size_t>(1, kPaperPage2M / kPageBytes * kBlocksPerPage);
  for (int tier = 0; tier < tiers_; ++tier) {
    const size_t blocks = Blocks(tier);
    ParallelFor(threads, (blocks + kTaskBlocks - 1) / kTaskBlocks, [&](size_t task) {
      const size_t end = std::min(blocks, (task + 1) * kTaskBlocks);
      for (size_t block = task * kTaskBlocks; block < end; ++block) FillBlock(keys, tier, block);
    });
  }
}

template <PaperBlocking kBlocking, size_t kPageBytes>
void PaperTree<kBlocking, kPageBytes>::FillBlock(absl::Span<const uint32_t> keys, int tier,
                                                 size_t block) {
  constexpr int32_t kGreatest = std::numeric_limits<int32_t>::max();
  for (int level = 0; level < kBlockLevels; ++level) {
    const size_t nodes = size_t{1} << (kFanOutBits * level);
    // The levels below have `stride` - 1 keys between two adjacent keys of this one.
    const size_t stride = size_t{1} << (kFanOutBits * ((tiers_ - tier) * kBlockLevels - level - 1));
    int32_t* to = keys_.data() + BlockSlot(tier, block) + NodesAbove(level) * kNodeSlots;
    for (size_t i = 0; i < nodes; ++i, to += kNodeSlots) {
      const size_t first = ((block * nodes + i) << kFanOutBits) + 1;
      for (size_t slot = 0; slot < kNodeKeys; ++slot) {
        const size_t entry = (first + RankOfSlot<kBlocking>(slot)) * stride - 1;
        to[slot] = entry < keys.size() ? Flipped(keys[entry]) : kGreatest;
      }
      if constexpr (kNodeSlots > kNodeKeys) to[kNodeKeys] = kGreatest;
    }
  }
}

template <PaperBlocking kBlocking, size_t kPageBytes>
template <size_t kInFlight>
void PaperTree<kBlocking, kPageBytes>::LowerBound(absl::Span<const uint32_t> queries,
                                                  Position* positions) const {
  struct Search {
    int32_t query;
    size_t node;           // in the level of the block that comes next
    size_t block;          // in the tier; in the end, the position
    const int32_t* slots;  // of the block
  };
  std::array<Search, kInFlight> searches;
  for (size_t first = 0; first < queries.size(); first += kInFlight) {
    const size_t count = std::min(kInFlight, queries.size() - first);
    for (size_t j = 0; j < count; ++j) searches[j] = {Flipped(queries[first + j]), 0, 0, nullptr};
    for (int tier = 0; tier < tiers_; ++tier) {
      const int first_level = tier == 0 ? first_level_ : 0;
      for (size_t j = 0; j < count; ++j) {
        Search& search = searches[j];
        search.node = 0;
        search.slots = keys_.data() + BlockSlot(tier, search.block);
        if constexpr (kInFlight > 1) {
          Prefetch(search.slots + NodesAbove(first_level) * kNodeSlots);
        }
      }
      for (int level = first_level; level < kBlockLevels; ++level) {
        for (size_t j = 0; j < count; ++j) {
          Search& search = searches[j];
          const int32_t* node = search.slots + (NodesAbove(level) + search.node) * kNodeSlots;
          search.node = (search.node << kFanOutBits) + ChildOf<kBlocking>(node, search.query);
          if constexpr (kInFlight > 1) {
            if (level + 1 == kBlockLevels) continue;
            Prefetch(search.slots + (NodesAbove(level + 1) + search.node) * kNodeSlots);
          }
        }
      }
      for (size_t j = 0; j < count; ++j) {
        searches[j].block = (searches[j].block << kBlockBits) + searches[j].node;
      }
    }
    for (size_t j = 0; j < count; ++j) {
      positions[first + j] = static_cast<Position>(searches[j].block);
    }
  }
}

#define CAIRN_PAPER_TREE(blocking, page)                                                         \
  template class PaperTree<blocking, page>;                                                      \
  template void PaperTree<blocking, page>::LowerBound<1>(absl::Span<const uint32_t>, Position*)  \
      const;                                                                                     \
  template void PaperTree<blocking, page>::LowerBound<8>(absl::Span<const uint32_t>, Position*)  \
      const;                                                                                     \
  template void PaperTree<blocking, page>::LowerBound<32>(absl::Span<const uint32_t>, Position*) \
      const;
CAIRN_PAPER_TREE(PaperBlocking::kPage, kPaperPage4K)
CAIRN_PAPER_TREE(PaperBlocking::kPage, kPaperPage2M)
CAIRN_PAPER_TREE(PaperBlocking::kLine, kPaperPage4K)
CAIRN_PAPER_TREE(PaperBlocking::kLine, kPaperPage2M)
CAIRN_PAPER_TREE(PaperBlocking::kSimd, kPaperPage4K)
CAIRN_PAPER_TREE(PaperBlocking::kSimd, kPaperPage2M)
#undef CAIRN_PAPER_TREE

}  // namespace cairn::bench
