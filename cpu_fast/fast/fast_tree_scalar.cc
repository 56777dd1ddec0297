#include "cpu_fast/fast/fast_tree_scalar.h"

namespace cairn {
namespace {

template <typename Key>
constexpr Key kFlip = Key{1} << (sizeof(Key) * 8 - 1);

template <typename Key>
size_t LowerBoundOf(const FastTreeView<Key>& tree, Key query) {
  using Layout = TreeLayout<Key>;
  const auto flipped = static_cast<std::make_signed_t<Key>>(query ^ kFlip<Key>);
  size_t node = 0;
  for (int level = 0; level < tree.layout.levels(); ++level) {
    const auto* separators = tree.nodes + tree.layout.Line(level, node) * Layout::kLineKeys;
    size_t less = 0;
    for (size_t i = 0; i < Layout::kLineKeys; ++i) less += separators[i] < flipped;
    node = (node << Layout::kFanOutBits) + less;
  }
  const size_t first = node * Layout::kLineKeys;
  const Key* line = node + 1 == tree.layout.leaves() ? tree.last_line : tree.keys + first;
  size_t less = 0;
  for (size_t i = 0; i < Layout::kLineKeys; ++i) less += line[i] < query;
  return first + less;
}

template <typename Key>
void LowerBound(const FastTreeView<Key>& tree, absl::Span<const Key> queries, Position* positions) {
  for (size_t i = 0; i < queries.size(); ++i) {
    positions[i] = static_cast<Position>(LowerBoundOf(tree, queries[i]));
  }
}

template <typename Key>
void FindFirst(const FastTreeView<Key>& tree, absl::Span<const Key> queries, RowId* row_ids) {
  for (size_t i = 0; i < queries.size(); ++i) {
    const size_t entry = LowerBoundOf(tree, queries[i]);
    const bool found = entry < tree.layout.entries() && tree.keys[entry] == queries[i];
    row_ids[i] = found ? tree.row_ids[entry] : kNoRow;
  }
}

}  // namespace

template <typename Key>
const FastTreeSearch<Key>& ScalarFastTreeSearch() {
  static constexpr FastTreeSearch<Key> kSearches = {LowerBound<Key>, FindFirst<Key>};
  return kSearches;
}

template const FastTreeSearch<uint32_t>& ScalarFastTreeSearch<uint32_t>();
template const FastTreeSearch<uint64_t>& ScalarFastTreeSearch<uint64_t>();

}  // namespace cairn
