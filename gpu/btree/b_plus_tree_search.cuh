#pragma once

#include "gpu/btree/b_plus_tree_search.h"
#include "gpu/btree/b_plus_tree_searcher.cuh"
#include "gpu/search/search_kernel.cuh"

// SearchPages, to be instantiated for one key type per source file.
namespace cairn::gpu {

// Lanes per group, by the size of a page's keys in bytes: one per 16-byte vector, but at most four,
// because every lane repeats the work that is common to the group. Pages whose vectors do not fit
// the registers of four lanes use more. 2^26 hits, u32, n = 2^28: order 16, two lanes 11.8 G/s,
// four 19.2; order 32, four lanes 13.8, eight 11.7; order 64, four 10.5, eight 10.8, sixteen 7.0.
// u64, n = 2^26: order 8, two lanes 13.2, four 14.4; order 16, two 8.0, four 13.6, eight 12.3;
// order 64, four 5.0, eight 6.8.
template <typename Key, int kOrder>
inline constexpr int kCombinedLanes = kOrder * sizeof(Key) >= 512  ? 8
                                      : kOrder * sizeof(Key) >= 64 ? 4
                                                                   : kOrder * sizeof(Key) / 16;

// The policies of the kernel frame. Batches that would leave multiprocessors idle use small blocks.
using CombinedPolicy = SearchPolicy<256, 2>;
using SmallBatchPolicy = SearchPolicy<64, 1>;
inline constexpr size_t kSmallBatch = size_t{1} << 17;
using BinaryPolicy = SearchPolicy<256, 1>;
using MultiplePolicy = SearchPolicy<128, 1>;

template <typename Key>
absl::Status SearchPages(const BPlusTreePages<Key>& pages, BPlusTreeMethod method, Operation query,
                         DeviceKeys keys, void* results, cudaStream_t stream) {
  if (method == BPlusTreeMethod::kBrute) {
    return SearchAllLeaves(pages, query, keys, results, stream);
  }
  return VisitPages(pages, [&](const auto& view) {
    using Pages = std::decay_t<decltype(view)>;
    const BPlusTreeSearcher<Key, Pages> base{view, query == Operation::kFindFirst};
    const auto search = [&]<typename Policy>(const auto& searcher) {
      return SearchBatch<Policy>(searcher, pages.entries(), query, keys, results, stream);
    };
    const auto combined = [&]<int kOrder>() {
      using Searcher = BPlusTreeCombinedSearcher<Key, Pages, kOrder, kCombinedLanes<Key, kOrder>>;
      if (keys.size() <= kSmallBatch) {
        return search.template operator()<SmallBatchPolicy>(Searcher{base});
      }
      return search.template operator()<CombinedPolicy>(Searcher{base});
    };
    if (method == BPlusTreeMethod::kBinary) {
      return search.template operator()<BinaryPolicy>(BPlusTreeBinarySearcher<Key, Pages, 1>{base});
    }
    if (method == BPlusTreeMethod::kMultiple) {
      return search.template operator()<MultiplePolicy>(
          BPlusTreeBinarySearcher<Key, Pages, 16>{base});
    }
    switch (pages.layout.order()) {
      case 8:
        return combined.template operator()<8>();
      case 16:
        return combined.template operator()<16>();
      case 32:
        return combined.template operator()<32>();
      default:
        return combined.template operator()<64>();
    }
  });
}

}  // namespace cairn::gpu
