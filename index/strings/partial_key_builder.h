#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/parallel.h"
#include "index/strings/partial_key_trie.h"
#include "index/strings/sparse_key.h"

namespace cairn {

// Builds trees of partial keys for any shape of nodes: those of the CPU are two cache lines wide,
// those of the GPU half of one.
//
// From the top: a node's range is cut at the first bits in which its keys differ, each time the
// largest piece, while the node has free slots and can use the bits. Then adjacent pieces that fit
// one child are joined. So children, and leaves in particular, are well filled although the trie is
// not balanced. The child cuts joined pieces again, since its own trie is that of its range.
//
// Keys of a leaf are *ties* if its partial keys do not distinguish them: they are equal, or differ
// in too many or too distant bits. A part of the tree that would need more than
// Shape::kMaxBytesPerKey, or be deeper than kMaxLevels, becomes a leaf whose keys are all tied. So
// no set of keys makes the tree large, or much slower than binary search. If keys are out of order,
// the tree's answers are meaningless, but still numbers of keys.

// A node, before its Shape packs it.
template <typename Shape>
struct PlannedNode {
  typename Shape::Bits bits = Shape::NodeBits();
  uint16_t slots[Shape::kSlots] = {};  // sparse_key.h
  // Bit i is set if slot i leads to another child than slot i - 1; in a leaf all are set.
  uint64_t starts = 0;
  uint32_t base = 0;     // of an inner node: the first child; of a leaf: its first key
  uint32_t entries = 0;  // of a leaf: its keys, at most kSlots unless all are ties; otherwise 0

  PlannedNode() { std::fill(std::begin(slots) + 1, std::end(slots), kTied); }
};

// In addition to the members that PartialKeyTrie uses, a Shape has
//   Node                  the packed form of a PlannedNode, made by Pack(planned);
//   Rebase(&node, by)     adds to the base of a node that is not a leaf;
//   RootBits(most)        an empty set for at most `most` bits;
//   kLowestInner          keys in the range of the lowest inner nodes: few enough that the slots
//                         can cut it into pieces that pack well into leaves;
//   kInnerFanOut          the factor by which the ranges of the level above are larger;
//   kLargestLowestInner   a range of up to this many keys is also a lowest inner node, if its
//   kWellFilled           leaves hold this many keys on average;
//   kMaxBytesPerKey       of a part of the tree;
//   kMaxRootBits, kKeysPerRootElement   the root table has at most 2^kMaxRootBits elements, and at
//                         most one per kKeysPerRootElement keys
template <typename Shape>
class PartialKeyBuilder {
 public:
  using Node = typename Shape::Node;
  using Bits = typename Shape::Bits;

  struct Tree {
    Bits root_bits;
    AlignedBuffer<uint32_t> root;  // partial key -> node; 2^(number of root_bits)
    AlignedBuffer<Node> nodes;
  };

  // Builds the tree over keys[0] to keys[size - 1], at least one, on up to `threads` threads.
  // The result does not depend on their number. Temporarily uses about nine bytes of memory per
  // key. Throws std::bad_alloc.
  template <typename Keys>
  static Tree Build(const Keys& keys, size_t size, int threads) {
    return Build(PartialKeyTrie(keys, size, threads), size, threads);
  }
  // The largest number of bits of the root of a tree over `keys` keys.
  static size_t RootBits(size_t keys) {
    size_t bits = 0;
    while (bits < Shape::kMaxRootBits && (Shape::kKeysPerRootElement << (bits + 1)) <= keys) {
      ++bits;
    }
    return bits;
  }

 private:
  using Range = PartialKeyTrie::Range;
  using Division = PartialKeyTrie::Division<Bits>;
  using Planned = PlannedNode<Shape>;

  static constexpr int kMaxLevels = 16;
  // Keys of the subtrees that one task builds.
  static constexpr size_t kBuildGrain = size_t{1} << 16;
  static constexpr uint32_t kSame = PartialKeyTrie::kSame;
  static constexpr size_t kSlots = Shape::kSlots;

  // The sparse partial key of a piece. `previous` is that of the piece before it, and `place` is
  // the bit that separates the two. The bits above `place` are the same, because the paths differ
  // only from `place` on.
  static uint32_t NextSparseKey(uint32_t previous, uint32_t place) {
    return (previous & ~(place | (place - 1))) | place;
  }

  class Subtree;
  struct RootPieces;
  static Tree Build(const PartialKeyTrie& trie, size_t size, int threads);
};

// Consecutive subtrees in their own nodes.
template <typename Shape>
class PartialKeyBuilder<Shape>::Subtree {
 public:
  explicit Subtree(const PartialKeyTrie& trie) : trie_(trie) {}

  // Makes nodes for the ranges, contiguous at the front, and for all below them.
  void Build(absl::Span<const Range> ranges) { BuildChildren(ranges, 1); }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  uint32_t BuildChildren(absl::Span<const Range> ranges, int level) {
    const size_t base = nodes_.size();
    nodes_.resize(base + ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      // Made separately, since making nodes below reallocates the vector.
      const Node node = Shape::Pack(BuildNode(ranges[i], level));
      nodes_[base + i] = node;
    }
    return static_cast<uint32_t>(base);
  }

  Planned BuildNode(const Range& range, int level) {
    if (range.size() <= kSlots) return Leaf(range);
    const bool same = trie_.difference(trie_.Cut(range)) == kSame;
    if (same || level == kMaxLevels) return TiedLeaf(range, same);
    const size_t size_before = nodes_.size();
    Planned node = Inner(range, level);
    const size_t bytes = (nodes_.size() - size_before + 1) * sizeof(Node);
    if (bytes <= Shape::kMaxBytesPerKey * range.size()) return node;
    nodes_.resize(size_before);
    return TiedLeaf(range, false);
  }

  // A leaf that distinguishes no keys. `same`: all its keys have the same bits.
  static Planned TiedLeaf(const Range& range, bool same) {
    Planned node;
    if (!same) node.slots[1] |= kMixedTies;
    node.base = static_cast<uint32_t>(range.first);
    node.entries = static_cast<uint32_t>(range.size());
    node.starts = UINT64_MAX;
    return node;
  }

  Planned Leaf(const Range& range) const {
    Bits bits = Shape::NodeBits();
    bool told_apart[kSlots] = {};
    if (trie_.AddAll(range, &bits)) {
      for (size_t i = 1; i < range.size(); ++i) {
        told_apart[i] = trie_.difference(range.first + i) != kSame;
      }
    } else {
      bits = Shape::NodeBits();
      TellApart(range, range.first, &bits, told_apart);
    }
    Planned node = TiedLeaf(range, true);
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
        if (difference != kSame) ties |= kMixedTies;
      }
    }
    node.bits = std::move(bits);
    return node;
  }

  // Sets told_apart[i - begin] for each cut i of the range's trie that the bits can make.
  void TellApart(const Range& range, size_t begin, Bits* bits, bool* told_apart) const {
    if (range.size() == 1) return;
    const size_t cut = trie_.Cut(range);
    if (trie_.difference(cut) == kSame || !bits->Add(trie_.difference(cut))) return;
    told_apart[cut - begin] = true;
    TellApart({range.first, cut}, begin, bits, told_apart);
    TellApart({cut, range.last}, begin, bits, told_apart);
  }

  // The largest number of keys of an inner child, in a node of `size` keys.
  static size_t ChildCapacity(size_t size) {
    size_t capacity = Shape::kLowestInner;
    while (capacity * Shape::kInnerFanOut < size) capacity *= Shape::kInnerFanOut;
    return capacity;
  }

  Division Divide(const Range& range) const {
    if (range.size() <= Shape::kLargestLowestInner) {
      Division leaves = trie_.Divide<Shape>(range, kSlots, kSlots, Shape::NodeBits());
      const bool well_filled = leaves.children.size() * Shape::kWellFilled <= range.size() &&
                               leaves.largest_child <= kSlots;
      if (well_filled || range.size() <= Shape::kLowestInner) return leaves;
    }
    return trie_.Divide<Shape>(range, ChildCapacity(range.size()), kSlots, Shape::NodeBits());
  }

  Planned Inner(const Range& range, int level) {
    Division division = Divide(range);
    const std::vector<size_t>& pieces = division.pieces;
    const std::vector<size_t>& starts = division.children;

    Planned node;
    uint32_t sparse = 0;
    std::vector<Range> children;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) sparse = NextSparseKey(sparse, division.bits.Place(trie_.difference(pieces[i])));
      node.slots[i] = static_cast<uint16_t>(sparse);
      const size_t child = children.size();
      if (child == starts.size() || starts[child] != pieces[i]) continue;
      node.starts |= uint64_t{1} << i;
      children.push_back({pieces[i], child + 1 < starts.size() ? starts[child + 1] : range.last});
    }
    node.bits = std::move(division.bits);
    node.base = BuildChildren(children, level + 1);
    return node;
  }

  const PartialKeyTrie& trie_;
  std::vector<Node> nodes_;
};

// The pieces that the root table distinguishes.
template <typename Shape>
struct PartialKeyBuilder<Shape>::RootPieces {
  std::vector<uint32_t> sparse_keys;
  std::vector<uint32_t> nodes;

  // Fills the part of the table whose elements share all bits above `place`, where pieces
  // [first, last) qualify: those with the bit at `place` are after those without. Terminates for
  // any sparse keys: those of unordered keys may be the same, or all have the bit.
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

template <typename Shape>
typename PartialKeyBuilder<Shape>::Tree PartialKeyBuilder<Shape>::Build(const PartialKeyTrie& trie,
                                                                        size_t size, int threads) {
  const Range all = {0, size};
  const size_t root_bits = RootBits(size);
  const Division division =
      trie.Divide<Shape>(all, size > Shape::kLowestInner ? Shape::kLowestInner : kSlots,
                         size_t{1} << root_bits, Shape::RootBits(root_bits));
  const std::vector<size_t>& pieces = division.pieces;
  const std::vector<size_t>& starts = division.children;
  const Bits& bits = division.bits;

  // Subtrees, cut into tasks of kBuildGrain keys or one subtree.
  std::vector<Range> children;
  std::vector<size_t> tasks;
  for (size_t i = 0; i < starts.size(); ++i) {
    children.push_back({starts[i], i + 1 < starts.size() ? starts[i + 1] : all.last});
    const bool full =
        tasks.empty() || children.back().last - children[tasks.back()].first > kBuildGrain;
    if (full) tasks.push_back(i);
  }
  tasks.push_back(children.size());
  std::vector<Subtree> subtrees(tasks.size() - 1, Subtree(trie));
  ParallelFor(threads, subtrees.size(), [&](size_t t) {
    subtrees[t].Build(absl::MakeConstSpan(children).subspan(tasks[t], tasks[t + 1] - tasks[t]));
  });

  // All nodes in one array.
  std::vector<size_t> begins = {0};
  for (const Subtree& subtree : subtrees) begins.push_back(begins.back() + subtree.nodes().size());
  Tree tree = {bits, {}, AlignedBuffer<Node>(begins.back())};
  ParallelFor(threads, subtrees.size(), [&](size_t t) {
    Node* to = tree.nodes.data() + begins[t];
    for (Node node : subtrees[t].nodes()) {
      Shape::Rebase(&node, static_cast<uint32_t>(begins[t]));
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
  tree.root = AlignedBuffer<uint32_t>(size_t{1} << bits.size());
  root.FillTable(0, pieces.size(), uint32_t{1} << bits.size() >> 1, tree.root.span());
  return tree;
}

}  // namespace cairn
