#pragma once

#include "gpu/b_plus_tree_search.h"
#include "gpu/b_plus_tree_searcher.cuh"
#include "gpu/search_kernel.cuh"

// SearchPages, to be instantiated for one type of key a file.
namespace cairn::gpu {

// Lanes of a group by order: so that each reads one vector, but no more than eight, and no fewer
// than make two vectors in flight worth their registers.
template <typename Key, int kOrder>
inline constexpr int kCombinedLanes = kOrder * sizeof(Key) / 16 < 8 ? kOrder * sizeof(Key) / 16 : 8;

// The frame's parameters.
template <typename Key, int kOrder>
using CombinedPolicy = SearchPolicy<256, 2>;
using BinaryPolicy = SearchPolicy<256, 2>;
using MultiplePolicy = SearchPolicy<128, 1>;

inline LeafAnswer AnswerOf(DeviceIndex::PointQuery query) {
  switch (query) {
    case DeviceIndex::PointQuery::kFindFirst:
      return LeafAnswer::kRow;
    case DeviceIndex::PointQuery::kContains:
      return LeafAnswer::kEquals;
    default:
      return LeafAnswer::kPlace;
  }
}

template <typename Key>
absl::Status SearchPages(const BPlusTreePages<Key>& pages, BPlusTreeMethod method,
                         DeviceIndex::PointQuery query, DeviceKeys keys, void* results,
                         cudaStream_t stream) {
  if (method == BPlusTreeMethod::kBrute) {
    return SearchAllLeaves(pages, query, keys, results, stream);
  }
  return VisitPages(pages, [&](const auto& view) {
    using Pages = std::decay_t<decltype(view)>;
    const BPlusTreeAnswers<Key, Pages> answers{view, AnswerOf(query)};
    const auto search = [&]<typename Policy>(const auto& searcher) {
      return SearchBatch<Policy>(searcher, pages.entries(), query, keys, results, stream);
    };
    const auto combined = [&]<int kOrder>() {
      using Searcher = BPlusTreeCombinedSearcher<Key, Pages, kOrder, kCombinedLanes<Key, kOrder>>;
      return search.template operator()<CombinedPolicy<Key, kOrder>>(Searcher{answers});
    };
    if (method == BPlusTreeMethod::kBinary) {
      return search.template operator()<BinaryPolicy>(
          BPlusTreeBinarySearcher<Key, Pages, 1>{answers});
    }
    if (method == BPlusTreeMethod::kMultiple) {
      return search.template operator()<MultiplePolicy>(
          BPlusTreeBinarySearcher<Key, Pages, 16>{answers});
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
