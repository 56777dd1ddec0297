#include "gpu/strings/string_tree.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "index/machine/parallel.h"
#include "index/strings/partial_key_builder.h"
#include "index/strings/string_compare.h"

namespace cairn::gpu {
namespace {

// Entries that one task reads.
constexpr size_t kEntriesATask = size_t{1} << 16;

// Ascending bits, as many as a root or a node can test.
class BitSet {
 public:
  // At most `most` bits, all within `span` of the first one.
  BitSet(size_t most, uint32_t span) : most_(most), span_(span) {}

  bool Add(uint32_t bit) {
    uint32_t* const end = bits_ + size_;
    uint32_t* const at = std::lower_bound(bits_, end, bit);
    if (at != end && *at == bit) return true;
    if (size_ == most_ || bit > StringNode::kMaxBit) return false;
    if (size_ > 0 && std::max(bit, end[-1]) - std::min(bit, bits_[0]) > span_) return false;
    std::copy_backward(at, end, end + 1);
    *at = bit;
    ++size_;
    return true;
  }
  size_t size() const { return size_; }
  // The value in a partial key of a bit that is in the set.
  uint32_t Place(uint32_t bit) const {
    const auto at = std::lower_bound(bits_, bits_ + size_, bit) - bits_;
    return uint32_t{1} << (size_ - 1 - static_cast<size_t>(at));
  }
  // The bit whose value in a partial key is 1 << place.
  uint32_t at(size_t place) const { return bits_[size_ - 1 - place]; }
  uint32_t first() const { return size_ == 0 ? 0 : bits_[0]; }

 private:
  size_t most_;
  uint32_t span_;
  size_t size_ = 0;
  uint32_t bits_[StringTree::kMaxRootBits];
};

// The properties of a tree's nodes that PartialKeyBuilder requires.
struct Shape {
  using Node = StringNode;
  using Bits = BitSet;

  static constexpr size_t kSlots = StringNode::kSlots;
  static constexpr size_t kLowestInner = 200;
  static constexpr size_t kInnerFanOut = 12;
  static constexpr size_t kLargestLowestInner = 400;
  static constexpr size_t kWellFilled = 13;
  static constexpr size_t kMaxBytesPerKey = 16;
  static constexpr size_t kMaxRootBits = StringTree::kMaxRootBits;
  static constexpr size_t kKeysPerRootElement = 8;

  static Bits NodeBits() { return {static_cast<size_t>(kMaxNodeBits), StringNode::kMaxSpan}; }
  static Bits RootBits(size_t most) { return {most, UINT32_MAX}; }

  static Node Pack(const PlannedNode<Shape>& planned) {
    Node node = {};
    const uint32_t first = planned.bits.first();
    for (size_t place = 0; place < planned.bits.size(); ++place) {
      node.words[place / 4 * 4] |= (planned.bits.at(place) - first) << (place % 4 * 8);
    }
    node.words[1] = planned.base;
    node.words[2] = (first & 0x7FF) << 20;
    node.words[3] = first >> 11 | uint32_t{planned.slots[1]} << 16;
    for (uint32_t s = 2; s < kSlots; ++s) {
      const uint32_t chunk = (s + 4) / 6, v = (s + 4) % 6;
      node.words[4 * chunk + 1 + v % 3] |= uint32_t{planned.slots[s]} << (16 * (v / 3));
    }
    if (planned.entries == 0) {
      node.words[2] |= static_cast<uint32_t>(planned.starts) & StringNode::kStarts;
    } else if (planned.entries <= kSlots) {
      node.words[2] |= StringNode::kLeaf | planned.entries;
    } else {
      node.words[2] |= StringNode::kLeaf;
      node.words[0] = planned.entries;
    }
    return node;
  }
  static void Rebase(Node* node, uint32_t by) {
    if (!node->is_leaf()) node->words[1] += by;
  }
};

bool HasTies(const StringNode& node) {
  if (!node.is_leaf()) return false;
  for (uint32_t s = 0; s < std::min(node.entries(), StringNode::kSlots); ++s) {
    if (node.TiesBehind(s) > 0) return true;
  }
  return false;
}

}  // namespace

DistinctStrings::DistinctStrings(const BytesColumn& keys, int threads)
    : keys_(keys), keys_size_(keys.size()) {
  const size_t tasks = (keys.size() + kEntriesATask - 1) / kEntriesATask;
  struct Found {
    size_t distinct = 0, longest = 0;
    uint64_t bytes = 0;
  };
  std::vector<Found> found(tasks + 1);
  std::atomic<bool> ascend = true;
  const auto for_each = [&](size_t task, auto take) {
    const size_t last = std::min((task + 1) * kEntriesATask, keys.size());
    for (size_t i = task * kEntriesATask; i < last; ++i) {
      if (i == 0 || !Equal(keys_[i - 1], keys_[i])) take(i);
    }
  };
  ParallelFor(threads, tasks, [&](size_t task) {
    Found mine;
    for_each(task, [&](size_t i) {
      const std::string_view key = keys_[i];
      if (i > 0 && !(keys_[i - 1] < key)) ascend = false;
      ++mine.distinct;
      mine.longest = std::max(mine.longest, key.size());
      mine.bytes += (key.size() + 7) / 8 * 8;
    });
    found[task + 1] = mine;
  });
  for (size_t task = 0; task < tasks; ++task) {
    found[task + 1].distinct += found[task].distinct;
    longest_ = std::max(longest_, found[task + 1].longest);
    bytes_ += found[task + 1].bytes;
  }
  ascend_ = ascend;
  const size_t distinct = found[tasks].distinct;
  if (distinct == keys.size()) return;
  first_ = AlignedBuffer<Position>(distinct + 1);
  ParallelFor(threads, tasks, [&](size_t task) {
    size_t next = found[task].distinct;
    for_each(task, [&](size_t i) { first_[next++] = static_cast<Position>(i); });
  });
  first_[distinct] = static_cast<Position>(keys.size());
}

StringTree BuildStringTree(const DistinctStrings& keys, int threads) {
  auto built = PartialKeyBuilder<Shape>::Build(keys, keys.size(), threads);
  StringTree tree;
  tree.root_bits.fill(StringTree::kNoRootBit);
  for (size_t place = 0; place < built.root_bits.size(); ++place) {
    tree.root_bits[place] = built.root_bits.at(place);
  }
  tree.root = std::move(built.root);
  tree.nodes = std::move(built.nodes);
  tree.ties = std::any_of(tree.nodes.begin(), tree.nodes.end(), HasTies);
  return tree;
}

uint64_t MostStringTreeBytes(size_t keys) {
  // The part below each root entry takes at most kMaxBytesPerKey per key, or one node.
  const uint64_t root = uint64_t{1} << PartialKeyBuilder<Shape>::RootBits(keys);
  return keys * Shape::kMaxBytesPerKey + root * (sizeof(StringNode) + sizeof(uint32_t)) +
         sizeof(StringNode) + sizeof(StringTree::root_bits);
}

}  // namespace cairn::gpu
