#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "cpu_fast/fast/fast_tree.h"
#include "cpu_fast/packed/packed_search.h"
#include "index/machine/prefetch.h"
#include "index/query/host_index.h"

namespace cairn {

// The search of packed leaves, independent of where they are stored. A derived class sets the view
// or the tree, and then calls ChooseSearch.
template <typename Key>
class PackedIndexBase : public HostIndex {
 public:
  std::string description() const override {
    return absl::StrFormat("cpu:packed,bits=%d,directory=%s,simd=%s", bits_,
                           has_cells() ? "cells" : "tree", SimdLevelName(level_));
  }

 protected:
  PackedIndexBase(SortedRun run, SimdLevel level) : HostIndex(std::move(run)), level_(level) {}

  void ChooseSearch(int bits, bool exact, LeafTrust trust) {
    bits_ = bits;
    search_ = &PackedSearchFor<Key>(level_, bits, exact, trust);
  }
  bool has_cells() const { return view_.cells != nullptr; }
  SimdLevel level() const { return level_; }

  void LowerBound(KeyBatch keys, Position* positions) const override {
    SearchPositions(keys.as<Key>(), positions);
  }
  void FindFirst(KeyBatch keys, RowId* row_ids) const override {
    SearchRows(keys.as<Key>(), row_ids);
  }

  void SearchPositions(absl::Span<const Key> queries, Position* positions) const {
    Search(queries, search_->lower_bound, search_->lower_bound_in_leaf, positions);
  }
  void SearchRows(absl::Span<const Key> queries, RowId* row_ids) const {
    Search(queries, search_->find_first, search_->find_first_in_leaf, row_ids);
  }

  PackedView<Key> view_;
  FastTreeNodes<Key> tree_;  // over the leaves' separators; unused if there are cells

 private:
  // With a tree as the directory, the number of queries whose leaves are prefetched together: few
  // enough that the lines stay in the L1 cache until they are read.
  static constexpr size_t kTreeGroup = 256;

  using SearchFunction = typename PackedSearch<Key>::Search;

  void Search(absl::Span<const Key> queries, SearchFunction by_cells, SearchFunction in_leaf,
              uint32_t* out) const {
    if (!has_cells()) return SearchTree(queries, in_leaf, out);
    by_cells(view_, queries, out);
  }

  void SearchTree(absl::Span<const Key> queries, SearchFunction in_leaf, uint32_t* out) const {
    // The leaves of one group arrive while the next group descends the tree.
    absl::Span<const Key> waiting;
    uint32_t* waiting_out = nullptr;
    for (size_t first = 0; first < queries.size(); first += kTreeGroup) {
      const absl::Span<const Key> group = queries.subspan(first, kTreeGroup);
      tree_.LowerBound(group, out + first);
      for (size_t i = 0; i < group.size(); ++i) {
        Prefetch(view_.leaves + out[first + i]);
      }
      in_leaf(view_, waiting, waiting_out);
      waiting = group;
      waiting_out = out + first;
    }
    in_leaf(view_, waiting, waiting_out);
  }

  const SimdLevel level_;
  int bits_ = 0;
  const PackedSearch<Key>* search_ = nullptr;
};

}  // namespace cairn
