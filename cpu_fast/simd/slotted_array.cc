// Batch lower bounds in a SlottedArray, compiled once for each instruction set that Highway
// supports.
#include "cpu_fast/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/simd/slotted_array.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"

#include <algorithm>
#include <utility>

#include "cpu_fast/simd/simd_dispatch.h"
#include "cpu_fast/simd/slotted_array.h"
#include "index/machine/prefetch.h"

// For slots with more elements than are compared at once.
#ifndef CAIRN_CPU_FAST_SLOTTED_ARRAY_ONCE
#define CAIRN_CPU_FAST_SLOTTED_ARRAY_ONCE
namespace cairn {
namespace {

// `from` is the slot's first element or a later one, or one past the slot's end.
inline uint32_t SearchSlot(const SlottedArray::View& view, size_t from, uint32_t number) {
  const size_t end = view.slots[(number >> view.log2_slot) + size_t{1}];
  const uint32_t* const first = view.elements + std::min(from, end);
  return static_cast<uint32_t>(std::lower_bound(first, view.elements + end, number) -
                               view.elements);
}

}  // namespace
}  // namespace cairn
#endif

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Returns the number of elements less than `number` among the kCompared elements from `first` on,
// and sets *equal if one of them is equal. Elements of later slots do no harm, because elements
// ascend.
HWY_INLINE size_t CountLess(const uint32_t* HWY_RESTRICT first, uint32_t number, bool* equal) {
  const hn::CappedTag<uint32_t, SlottedArray::kCompared> d;
  const auto wanted = hn::Set(d, number);
  size_t less = 0;
  bool found = false;
  for (size_t i = 0; i < SlottedArray::kCompared; i += hn::Lanes(d)) {
    const auto elements = hn::LoadU(d, first + i);
    less += hn::CountTrue(d, hn::Lt(elements, wanted));
    found |= !hn::AllFalse(d, hn::Eq(elements, wanted));
  }
  *equal = found;
  return less;
}

// Like SlottedArray::LowerBound; the positions written to `equal` count from `from`.
size_t LowerBounds(const SlottedArray::View& view, absl::Span<const uint32_t> numbers,
                   uint32_t* HWY_RESTRICT lower, size_t from, uint32_t* HWY_RESTRICT equal) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    lower[i] = view.slots[numbers[i] >> view.log2_slot];
    Prefetch(view.elements + lower[i]);
  }
  size_t found = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    bool is_equal;
    const size_t less = CountLess(view.elements + lower[i], numbers[i], &is_equal);
    lower[i] += static_cast<uint32_t>(less);
    if (HWY_UNLIKELY(less == SlottedArray::kCompared)) {
      lower[i] = SearchSlot(view, lower[i], numbers[i]);
      is_equal = view.elements[lower[i]] == numbers[i];
    }
    equal[found] = static_cast<uint32_t>(from + i);
    found += is_equal ? 1 : 0;
  }
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace cairn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn {
namespace {

// Numbers whose cache lines are in flight together.
constexpr size_t kGroup = 256;

size_t SearchGroup(SimdLevel level, const SlottedArray::View& view,
                   absl::Span<const uint32_t> numbers, uint32_t* lower, size_t from,
                   uint32_t* equal) {
  switch (level) { CAIRN_LEVEL_CASES(LowerBounds(view, numbers, lower, from, equal)) }
}

}  // namespace

SlottedArray::SlottedArray(size_t size)
    : level_(DefaultSimdLevel().value_or(SimdLevel::kScalar)),
      size_(size),
      elements_(size + kCompared) {
  std::fill(elements_.begin() + size, elements_.end(), UINT32_MAX);
}

void SlottedArray::Finish(uint32_t greatest) {
  while (log2_slot_ < 31 && (uint64_t{greatest} >> log2_slot_) * kElementsPerSlot > size_) {
    ++log2_slot_;
  }
  const size_t slots = (greatest >> log2_slot_) + size_t{1};
  slots_ = AlignedBuffer<uint32_t>(slots + 1);
  size_t element = 0;
  for (size_t slot = 0; slot < slots; ++slot) {
    while (element < size_ && elements_[element] >> log2_slot_ < slot) ++element;
    slots_[slot] = static_cast<uint32_t>(element);
  }
  slots_[slots] = static_cast<uint32_t>(size_);
}

size_t SlottedArray::LowerBound(absl::Span<const uint32_t> numbers, absl::Span<uint32_t> lower,
                                absl::Span<uint32_t> equal) const {
  const View view{elements_.data(), slots_.data(), log2_slot_};
  size_t found = 0;
  for (size_t first = 0; first < numbers.size(); first += kGroup) {
    found += SearchGroup(level_, view, numbers.subspan(first, kGroup), lower.data() + first, first,
                         equal.data() + found);
  }
  return found;
}

}  // namespace cairn
#endif  // HWY_ONCE
