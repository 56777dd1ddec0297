#include "cpu_fast/strings/partial_key_builder.h"

#include <algorithm>
#include <utility>

#include "index/strings/partial_key_builder.h"

namespace cairn {
namespace {

// The properties of a tree's nodes that PartialKeyBuilder requires.
struct Shape {
  using Node = PartialKeyNode;
  using Bits = PartialKeyBitSet;

  static constexpr size_t kSlots = PartialKeyNode::kSlots;
  static constexpr size_t kLowestInner = 900;
  static constexpr size_t kInnerFanOut = 24;
  static constexpr size_t kLargestLowestInner = 1800;
  static constexpr size_t kWellFilled = 28;
  static constexpr size_t kMaxBytesPerKey = 12;
  static constexpr size_t kMaxRootBits = 16;
  static constexpr size_t kKeysPerRootElement = 8;

  static Bits NodeBits() { return PartialKeyBitSet(kMaxNodeBits); }
  static Bits RootBits(size_t most) { return PartialKeyBitSet(most); }

  static Node Pack(const PlannedNode<Shape>& planned) {
    Node node;
    node.base = planned.base;
    node.entries = planned.entries;
    node.bits = planned.bits.bits();
    node.starts = planned.starts << PartialKeyNode::kHeaderLanes;
    std::copy(std::begin(planned.slots), std::end(planned.slots), node.slots);
    return node;
  }
  static void Rebase(Node* node, uint32_t by) {
    if (!node->is_leaf()) node->base += by;
  }
};

}  // namespace

PartialKeyNodes BuildPartialKeyNodes(const BytesColumn& keys, int threads) {
  auto tree = PartialKeyBuilder<Shape>::Build(keys, keys.size(), threads);
  return {tree.root_bits.bits(), std::move(tree.root), std::move(tree.nodes)};
}

}  // namespace cairn
