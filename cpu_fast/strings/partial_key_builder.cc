#include "cpu_fast/strings/partial_key_builder.h"

#include <algorithm>
#include <vector>

#include "cpu_fast/strings/partial_key_trie.h"
#include "index/machine/parallel.h"

namespace cairn {
namespace {

constexpr size_t kSlots = PartialKeyNode::kSlots;

// Entries in the range of the lowest inner nodes, small enough that slots suffice to cut it into
// pieces that pack well into leaves, and how many times more in those one level above.
constexpr size_t kLowestInner = 900;
constexpr size_t kInnerFanOut = 24;
// A larger range goes without a level if its leaves come out with so many entries on average.
constexpr size_t kLargestLowestInner = 1800;
constexpr size_t kWellFilled = 28;
constexpr size_t kMostBytesPerKey = 12;
constexpr int kMostLevels = 16;

// The root table has at most one element for so many keys.
constexpr size_t kKeysPerRootElement = 8;
constexpr size_t kMostRootBits = 16;

// Entries of the subtrees that one task builds.
constexpr size_t kBuildGrain = size_t{1} << 16;

constexpr uint32_t kSame = PartialKeyTrie::kSame;
using Range = PartialKeyTrie::Range;
using Division = PartialKeyTrie::Division;

// How many entries an inner child may have in a node of `size`.
size_t ChildCapacity(size_t size) {
  size_t capacity = kLowestInner;
  while (capacity * kInnerFanOut < size) capacity *= kInnerFanOut;
  return capacity;
}

// The sparse partial key of a piece, given that of the piece before it and the bit between them:
// their ways part at the bit, so that above it they are the same.
uint32_t NextSparseKey(uint32_t previous, uint32_t place) {
  return (previous & ~(place | (place - 1))) | place;
}

// Builds subtrees, one behind the other, in nodes of its own.
class SubtreeBuilder {
 public:
  explicit SubtreeBuilder(const PartialKeyTrie& trie) : trie_(trie) {}

  // Makes nodes for the ranges, one behind the other at the front, and for all below them.
  void Build(absl::Span<const Range> ranges) { BuildChildren(ranges, 1); }
  const std::vector<PartialKeyNode>& nodes() const { return nodes_; }

 private:
  uint32_t BuildChildren(absl::Span<const Range> ranges, int level) {
    const size_t base = nodes_.size();
    nodes_.resize(base + ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      // Made apart, since making nodes below moves the vector.
      const PartialKeyNode node = BuildNode(ranges[i], level);
      nodes_[base + i] = node;
    }
    return static_cast<uint32_t>(base);
  }

  PartialKeyNode BuildNode(const Range& range, int level) {
    if (range.size() <= kSlots) return Leaf(range);
    const bool same = trie_.difference(trie_.Cut(range)) == kSame;
    if (same || level == kMostLevels) return TiedLeaf(range, same);
    const size_t size_before = nodes_.size();
    const PartialKeyNode node = Inner(range, level);
    const size_t bytes = (nodes_.size() - size_before + 1) * sizeof(PartialKeyNode);
    if (bytes <= kMostBytesPerKey * range.size()) return node;
    nodes_.resize(size_before);
    return TiedLeaf(range, false);
  }

  static PartialKeyNode EmptyNode() {
    PartialKeyNode node = {};
    std::fill(std::begin(node.slots) + 1, std::end(node.slots), PartialKeyNode::kTied);
    return node;
  }

  // A leaf that tells nothing apart, be it that all its keys have the same bits.
  static PartialKeyNode TiedLeaf(const Range& range, bool same) {
    PartialKeyNode node = EmptyNode();
    if (!same) node.slots[1] |= PartialKeyNode::kMixed;
    node.base = static_cast<uint32_t>(range.first);
    node.entries = static_cast<uint32_t>(range.size());
    node.starts = PartialKeyNode::kAllStart;
    return node;
  }

  PartialKeyNode Leaf(const Range& range) const {
    PartialKeyBitSet bits(PartialKeyNode::kMostBits);
    bool told_apart[kSlots] = {};
    if (trie_.AddAll(range, &bits)) {
      for (size_t i = 1; i < range.size(); ++i) {
        told_apart[i] = trie_.difference(range.first + i) != kSame;
      }
    } else {
      bits = PartialKeyBitSet(PartialKeyNode::kMostBits);
      TellApart(range, range.first, &bits, told_apart);
    }
    PartialKeyNode node = TiedLeaf(range, true);
    node.bits = bits.bits();
    uint32_t sparse = 0;
    size_t last_told_apart = 0;
    for (size_t i = 1; i < range.size(); ++i) {
      const uint32_t difference = trie_.difference(range.first + i);
      if (told_apart[i]) {
        sparse = NextSparseKey(sparse, bits.Place(difference));
        node.slots[i] = static_cast<uint16_t>(sparse);
        last_told_apart = i;
      } else {
        uint16_t& ties = node.slots[last_told_apart + 1];
        ++ties;
        if (difference != kSame) ties |= PartialKeyNode::kMixed;
      }
    }
    return node;
  }

  // Sets told_apart[i - begin] for each cut i of the range's trie that the bits can make.
  void TellApart(const Range& range, size_t begin, PartialKeyBitSet* bits, bool* told_apart) const {
    if (range.size() == 1) return;
    const size_t cut = trie_.Cut(range);
    if (trie_.difference(cut) == kSame || !bits->Add(trie_.difference(cut))) return;
    told_apart[cut - begin] = true;
    TellApart({range.first, cut}, begin, bits, told_apart);
    TellApart({cut, range.last}, begin, bits, told_apart);
  }

  Division Divide(const Range& range) const {
    if (range.size() <= kLargestLowestInner) {
      Division leaves = trie_.Divide(range, kSlots, kSlots, PartialKeyNode::kMostBits);
      const bool well_filled =
          leaves.children.size() * kWellFilled <= range.size() && leaves.largest_child <= kSlots;
      if (well_filled || range.size() <= kLowestInner) return leaves;
    }
    return trie_.Divide(range, ChildCapacity(range.size()), kSlots, PartialKeyNode::kMostBits);
  }

  PartialKeyNode Inner(const Range& range, int level) {
    const Division division = Divide(range);
    const std::vector<size_t>& pieces = division.pieces;
    const std::vector<size_t>& starts = division.children;
    const PartialKeyBitSet& bits = division.bits;

    PartialKeyNode node = EmptyNode();
    node.bits = bits.bits();
    uint32_t sparse = 0;
    std::vector<Range> children;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) sparse = NextSparseKey(sparse, bits.Place(trie_.difference(pieces[i])));
      node.slots[i] = static_cast<uint16_t>(sparse);
      const size_t child = children.size();
      if (child == starts.size() || starts[child] != pieces[i]) continue;
      node.starts |= uint64_t{1} << (PartialKeyNode::kHeaderLanes + i);
      children.push_back({pieces[i], child + 1 < starts.size() ? starts[child + 1] : range.last});
    }
    node.base = BuildChildren(children, level + 1);
    return node;
  }

  const PartialKeyTrie& trie_;
  std::vector<PartialKeyNode> nodes_;
};

// The pieces that the root table tells apart.
struct RootPieces {
  std::vector<uint32_t> sparse_keys;
  std::vector<uint32_t> nodes;

  // Fills the part of the table whose elements share all bits above `place`, where pieces
  // [first, last) qualify: those with the bit at `place` are behind those without. Ends for any
  // sparse keys: those of keys out of order may be the same, or none without the bit.
  void FillTable(size_t first, size_t last, uint32_t place, absl::Span<uint32_t> table) const {
    if (last - first <= 1 || place == 0) {
      std::fill(table.begin(), table.end(), nodes[first]);
      return;
    }
    const size_t half = table.size() / 2;
    const auto begin = sparse_keys.begin();
    const size_t with_bit =
        std::partition_point(begin + first, begin + last,
                             [place](uint32_t sparse) { return (sparse & place) == 0; }) -
        begin;
    FillTable(first, with_bit, place / 2, table.first(half));
    if (with_bit == last) {
      std::copy_n(table.begin(), half, table.begin() + half);
    } else {
      FillTable(with_bit, last, place / 2, table.subspan(half));
    }
  }
};

size_t RootBits(size_t entries) {
  size_t bits = 0;
  while (bits < kMostRootBits && (kKeysPerRootElement << (bits + 1)) <= entries) ++bits;
  return bits;
}

}  // namespace

PartialKeyNodes BuildPartialKeyNodes(const BytesColumn& keys, int threads) {
  const PartialKeyTrie trie(keys, threads);
  const Range all = {0, keys.size()};
  const size_t root_bits = RootBits(keys.size());
  const Division division = trie.Divide(all, keys.size() > kLowestInner ? kLowestInner : kSlots,
                                        size_t{1} << root_bits, root_bits);
  const std::vector<size_t>& pieces = division.pieces;
  const std::vector<size_t>& starts = division.children;
  const PartialKeyBitSet& bits = division.bits;

  // Subtrees, cut into tasks of kBuildGrain entries or one subtree.
  std::vector<Range> children;
  std::vector<size_t> tasks;
  for (size_t i = 0; i < starts.size(); ++i) {
    children.push_back({starts[i], i + 1 < starts.size() ? starts[i + 1] : all.last});
    const bool full =
        tasks.empty() || children.back().last - children[tasks.back()].first > kBuildGrain;
    if (full) tasks.push_back(i);
  }
  tasks.push_back(children.size());
  std::vector<SubtreeBuilder> subtrees(tasks.size() - 1, SubtreeBuilder(trie));
  ParallelFor(threads, subtrees.size(), [&](size_t t) {
    subtrees[t].Build(absl::MakeConstSpan(children).subspan(tasks[t], tasks[t + 1] - tasks[t]));
  });

  // All nodes in one array.
  std::vector<size_t> begins = {0};
  for (const SubtreeBuilder& subtree : subtrees) {
    begins.push_back(begins.back() + subtree.nodes().size());
  }
  PartialKeyNodes tree;
  tree.nodes = AlignedBuffer<PartialKeyNode>(begins.back());
  ParallelFor(threads, subtrees.size(), [&](size_t t) {
    PartialKeyNode* to = tree.nodes.data() + begins[t];
    for (PartialKeyNode node : subtrees[t].nodes()) {
      if (!node.is_leaf()) node.base += static_cast<uint32_t>(begins[t]);
      *to++ = node;
    }
  });

  RootPieces root;
  uint32_t sparse = 0;
  size_t child = 0, task = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) sparse = NextSparseKey(sparse, bits.Place(trie.difference(pieces[i])));
    if (child + 1 < starts.size() && starts[child + 1] == pieces[i]) ++child;
    if (tasks[task + 1] == child) ++task;
    root.sparse_keys.push_back(sparse);
    root.nodes.push_back(static_cast<uint32_t>(begins[task] + child - tasks[task]));
  }
  tree.root_bits = bits.bits();
  tree.root = AlignedBuffer<uint32_t>(size_t{1} << bits.size());
  root.FillTable(0, pieces.size(), uint32_t{1} << bits.size() >> 1,
                 {tree.root.data(), tree.root.size()});
  return tree;
}

}  // namespace cairn
