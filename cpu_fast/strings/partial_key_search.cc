// The search kernels of PartialKeyTree, compiled once for each instruction set that Highway
// supports.
#include "cpu_fast/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/strings/partial_key_search.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include <cstring>
#include <type_traits>

#include "cpu_fast/simd/simd_dispatch.h"
#include "cpu_fast/strings/partial_key_search.h"
#include "hwy/highway.h"
#include "index/machine/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
struct Pext {
  HWY_ATTR HWY_INLINE uint64_t operator()(uint64_t word, uint64_t mask) const {
    return _pext_u64(word, mask);
  }
};
#endif
struct PortableGather {
  HWY_ATTR HWY_INLINE uint64_t operator()(uint64_t word, uint64_t mask) const {
    return GatherBits(word, mask);
  }
};

// The lane of the last slot whose bits are all set in `partial_key`.
HWY_ATTR HWY_INLINE int LastSubset(const PartialKeyNode& node, uint32_t partial_key) {
  if constexpr (HWY_TARGET == HWY_SCALAR) {  // comparing all slots takes up to 1.8 times as long
    size_t slot = PartialKeyNode::kSlots - 1;
    while ((node.slots[slot] & ~partial_key) != 0) --slot;
    return static_cast<int>(PartialKeyNode::kHeaderLanes + slot);
  }
  constexpr size_t kLanes = sizeof(PartialKeyNode) / sizeof(uint16_t);
  const hn::CappedTag<uint16_t, 32> d;
  constexpr size_t kStep = hn::MaxLanes(d);
  using Bits =
      std::conditional_t<kStep == 32, uint32_t, std::conditional_t<kStep == 16, uint16_t, uint8_t>>;
  const auto* const lanes = reinterpret_cast<const uint16_t*>(&node);
  const auto query = hn::Set(d, static_cast<uint16_t>(partial_key));
  uint64_t subsets = 0;
  for (size_t i = 0; i < kLanes; i += kStep) {
    const auto missing = hn::AndNot(query, hn::Load(d, lanes + i));
    uint8_t bytes[8];
    hn::StoreMaskBits(d, hn::Eq(missing, hn::Zero(d)), bytes);
    Bits bits;
    std::memcpy(&bits, bytes, sizeof(bits));
    subsets |= uint64_t{bits} << i;
  }
  return 63 - __builtin_clzll(subsets);
}

template <typename Gather, bool kPrefix>
HWY_ATTR HWY_INLINE uint32_t PartialKeyAt(const PartialKeyBits& bits, const PartialKeyGroup& group,
                                          size_t j) {
  const PaddedKey& key = group.keys[j];
  const uint32_t partial_key =
      JoinPartialKey(bits, Gather()(PartialKeyWindow(key, bits.offset[0]), bits.mask[0]),
                     Gather()(PartialKeyWindow(key, bits.offset[1]), bits.mask[1]));
  return kPrefix ? PartialKeyOfPrefix(bits, partial_key, group.prefixes[j]) : partial_key;
}

HWY_INLINE void PrefetchNode(const PartialKeyNode* node) {
  Prefetch(node);
  Prefetch(reinterpret_cast<const char*>(node) + sizeof(*node) / 2);
}

template <typename Gather, bool kPrefix>
HWY_ATTR void Look(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  for (size_t j = 0; j < group->size; ++j) {
    const uint32_t partial_key = PartialKeyAt<Gather, kPrefix>(tree.root_bits, *group, j);
    group->nodes[j] = partial_key;
    Prefetch(tree.root + partial_key);
  }
}

void ActivateAll(PartialKeyGroup* group) {
  group->active_size = group->size;
  for (size_t j = 0; j < group->size; ++j) group->active[j] = static_cast<uint8_t>(j);
}

void Enter(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  for (size_t j = 0; j < group->size; ++j) {
    const uint32_t node = tree.root[group->nodes[j]];
    group->nodes[j] = node;
    PrefetchNode(tree.nodes + node);
  }
  ActivateAll(group);
}

// Has no branch on whether a node is a leaf, because queries of one group reach their leaves at
// different depths.
template <typename Gather, bool kPrefix>
HWY_ATTR void Step(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  const EntryColumn inner[2] = {
      {reinterpret_cast<const char*>(tree.nodes), sizeof(PartialKeyNode)},
      {reinterpret_cast<const char*>(tree.nodes) + sizeof(PartialKeyNode) / 2,
       sizeof(PartialKeyNode)}};
  size_t still_active = 0;
  for (size_t a = 0; a < group->active_size; ++a) {
    const size_t j = group->active[a];
    const uint32_t at = group->nodes[j];
    const PartialKeyNode& node = tree.nodes[at];
    const uint32_t partial_key = PartialKeyAt<Gather, kPrefix>(node.bits, *group, j);
    const uint32_t next = node.Next(LastSubset(node, partial_key));
    const bool leaf = node.is_leaf();
    group->nodes[j] = leaf ? at : next;
    group->positions[j] = next;
    const EntryColumn* const wanted = leaf ? tree.wanted : inner;
    Prefetch(wanted[0].At(next));
    Prefetch(wanted[1].At(next));
    group->active[still_active] = static_cast<uint8_t>(j);
    still_active += leaf ? 0 : 1;
  }
  group->active_size = still_active;
}

template <typename Gather>
HWY_ATTR void FindPrefixBelow(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  ActivateAll(group);
  while (group->active_size > 0) Step<Gather, true>(tree, group);
}

template <typename Gather>
HWY_ATTR void FindPrefix(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  Look<Gather, true>(tree, group);
  Enter(tree, group);
  while (group->active_size > 0) Step<Gather, true>(tree, group);
}

template <typename Gather>
const PartialKeySearch& SearchWith() {
  static constexpr PartialKeySearch kSearch = {Look<Gather, false>, Enter, Step<Gather, false>,
                                               FindPrefix<Gather>, FindPrefixBelow<Gather>};
  return kSearch;
}

const PartialKeySearch& Search(bool fast_pext) {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
  if (fast_pext) return SearchWith<Pext>();
#endif
  static_cast<void>(fast_pext);
  return SearchWith<PortableGather>();
}

}  // namespace HWY_NAMESPACE
}  // namespace cairn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn {

namespace {

// Whether PEXT takes a few cycles. On AMD processors before Zen 3 it takes hundreds.
bool HasFastPext() {
#if HWY_ARCH_X86_64
  static const bool fast =
      !__builtin_cpu_is("bdver4") && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
  return fast;
#else
  return false;
#endif
}

}  // namespace

const PartialKeySearch& PartialKeySearchFor(SimdLevel level) {
  switch (level) { CAIRN_LEVEL_CASES(Search(HasFastPext())) }
}

}  // namespace cairn
#endif  // HWY_ONCE
