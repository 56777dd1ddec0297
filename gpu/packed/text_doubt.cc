#include "gpu/packed/text_doubt.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/layout/kary_node.h"
#include "gpu/packed/kary_directory.h"
#include "index/layout/packed_leaves.h"
#include "index/layout/wide_key.h"

namespace cairn::gpu {
namespace {

using Node = KaryDirectoryNode;

constexpr size_t kMostNodes = 256;

template <typename Key>
Key Between(Key before, Key key) {
  return before + (key - before) / 2;
}

// The separators that lookups of all keys of a node read; `keys` ascend, `capacity` to a leaf.
template <typename Key>
uint64_t CountReads(const std::vector<Key>& keys, size_t capacity) {
  const size_t leaves = (keys.size() + capacity - 1) / capacity;
  std::vector<Key> separators;
  for (size_t leaf = 1; leaf < leaves; ++leaf) {
    separators.push_back(Between(keys[leaf * capacity - 1], keys[leaf * capacity]));
  }
  const Node node = Node::Make(keys.front(), keys.back(), static_cast<uint32_t>(separators.size()),
                               [&](uint32_t i) { return separators[i]; });
  uint64_t reads = 0;
  for (const Key key : keys) {
    const Node::Ranks ranks = node.Find(key);
    reads += static_cast<uint64_t>(std::bit_width(ranks.high - ranks.low));
  }
  return reads;
}

template <typename Key>
double SeparatorsInDoubtOf(const TextCode& code, const BytesColumn& keys) {
  const auto capacity = static_cast<size_t>(LeafEntries(8 * static_cast<int>(sizeof(Key))));
  const size_t in_node = std::min(keys.size(), capacity * Node::kFanOut);
  const size_t nodes = std::min(kMostNodes, keys.size() / in_node);
  uint64_t reads = 0, asked = 0;
  std::vector<Key> numbers;
  for (size_t i = 0; i < nodes; ++i) {
    numbers.resize(in_node);
    (void)code.Number(keys, (keys.size() - in_node) / nodes * i, absl::MakeSpan(numbers));
    // Keys that repeat are in leaves once.
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (!std::is_sorted(numbers.begin(), numbers.end())) continue;  // no run's: it will be refused
    reads += CountReads(numbers, capacity);
    asked += numbers.size();
  }
  return asked == 0 ? 0 : static_cast<double>(reads) / static_cast<double>(asked);
}

}  // namespace

double SeparatorsInDoubt(const TextCode& code, const BytesColumn& keys) {
  return code.is_narrow() ? SeparatorsInDoubtOf<uint64_t>(code, keys)
                          : SeparatorsInDoubtOf<WideKey>(code, keys);
}

}  // namespace cairn::gpu
