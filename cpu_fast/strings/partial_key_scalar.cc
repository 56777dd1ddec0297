#include "cpu_fast/strings/partial_key_scalar.h"

namespace cairn {
namespace {

template <bool kPrefix>
uint32_t PartialKeyAt(const PartialKeyBits& bits, const PartialKeyGroup& group, size_t j) {
  const uint32_t partial_key = PartialKeyOf(bits, group.keys[j]);
  return kPrefix ? PartialKeyOfPrefix(bits, partial_key, group.prefixes[j]) : partial_key;
}

template <bool kPrefix>
void FindBelow(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  for (size_t j = 0; j < group->size; ++j) {
    while (true) {
      const PartialKeyNode& node = tree.nodes[group->nodes[j]];
      const uint32_t partial_key = PartialKeyAt<kPrefix>(node.bits, *group, j);
      size_t slot = PartialKeyNode::kSlots - 1;
      while ((node.slots[slot] & ~partial_key) != 0) --slot;
      const uint32_t next = node.Next(static_cast<int>(PartialKeyNode::kHeaderLanes + slot));
      if (node.is_leaf()) {
        group->positions[j] = next;
        break;
      }
      group->nodes[j] = next;
    }
  }
  group->active_size = 0;
}

template <bool kPrefix>
void Enter(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  for (size_t j = 0; j < group->size; ++j) {
    group->nodes[j] = tree.root[PartialKeyAt<kPrefix>(tree.root_bits, *group, j)];
  }
  group->active_size = group->size;
}

void LookAtNothing(const PartialKeyTreeView&, PartialKeyGroup*) {}

void FindPrefix(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  Enter<true>(tree, group);
  FindBelow<true>(tree, group);
}

}  // namespace

const PartialKeySearch& ScalarPartialKeySearch() {
  static constexpr PartialKeySearch kSearch = {LookAtNothing, Enter<false>, FindBelow<false>,
                                               FindPrefix, FindBelow<true>};
  return kSearch;
}

}  // namespace cairn
