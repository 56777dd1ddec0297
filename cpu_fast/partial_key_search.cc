// The search kernels of PartialKeyTree, compiled once for each instruction set that Highway knows
// and once as plain C++ (cpu_fast/partial_key_scalar.cc).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/partial_key_search.cc"
#include "hwy/foreach_target.h"
// Highway must come behind foreach_target.
#include <cstring>
#include <type_traits>

#include "cpu_fast/partial_key_scalar.h"
#include "cpu_fast/partial_key_search.h"
#include "hwy/highway.h"

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

HWY_INLINE void Prefetch(const PartialKeyNode* node) {
  __builtin_prefetch(node);
  __builtin_prefetch(reinterpret_cast<const char*>(node) + sizeof(*node) / 2);
}

// All queries take a step, then those that have not come to a leaf take the next one.
template <typename Gather, bool kPrefix>
HWY_ATTR void FindBelow(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  uint8_t active[PartialKeyGroup::kMost];
  for (size_t j = 0; j < group->size; ++j) active[j] = static_cast<uint8_t>(j);
  for (size_t count = group->size; count > 0;) {
    size_t still_active = 0;
    for (size_t a = 0; a < count; ++a) {
      const size_t j = active[a];
      const PartialKeyNode& node = tree.nodes[group->nodes[j]];
      const uint32_t partial_key = PartialKeyAt<Gather, kPrefix>(node.bits, *group, j);
      const uint32_t next = node.Next(LastSubset(node, partial_key));
      if (node.is_leaf()) {
        group->positions[j] = next;
      } else {
        group->nodes[j] = next;
        Prefetch(tree.nodes + next);
        active[still_active++] = static_cast<uint8_t>(j);
      }
    }
    count = still_active;
  }
}

template <typename Gather, bool kPrefix>
HWY_ATTR void Find(const PartialKeyTreeView& tree, PartialKeyGroup* group) {
  for (size_t j = 0; j < group->size; ++j) {
    group->nodes[j] = PartialKeyAt<Gather, kPrefix>(tree.root_bits, *group, j);
    __builtin_prefetch(tree.root + group->nodes[j]);
  }
  for (size_t j = 0; j < group->size; ++j) {
    group->nodes[j] = tree.root[group->nodes[j]];
    Prefetch(tree.nodes + group->nodes[j]);
  }
  FindBelow<Gather, kPrefix>(tree, group);
}

template <typename Gather>
const PartialKeySearch& SearchWith() {
  static constexpr PartialKeySearch kSearch = {Find<Gather, false>, Find<Gather, true>,
                                               FindBelow<Gather, true>};
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

#if HWY_ARCH_X86_64
namespace {

// Whether PEXT takes a few cycles, not hundreds, as on AMD's processors before Zen 3.
bool HasFastPext() {
  static const bool fast =
      !__builtin_cpu_is("bdver4") && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
  return fast;
}

}  // namespace
#endif

const PartialKeySearch& PartialKeySearchFor(SimdLevel level) {
  switch (level) {
#if HWY_ARCH_X86_64
#if (HWY_TARGETS & HWY_SSE4) != 0
    case SimdLevel::kSse4:
      return N_SSE4::Search(false);
#endif
#if (HWY_TARGETS & HWY_AVX2) != 0
    case SimdLevel::kAvx2:
      return N_AVX2::Search(HasFastPext());
#endif
#if (HWY_TARGETS & HWY_AVX3) != 0
    case SimdLevel::kAvx512:
      return N_AVX3::Search(HasFastPext());
#endif
#endif
    default:
      return ScalarPartialKeySearch();
  }
}

}  // namespace cairn
#endif  // HWY_ONCE
