#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// Ascending numbers below some limit, duplicates allowed, under a directory with a slot for every
// 2^n numbers that there may be: the lower bound of a number reads its slot, then one line. Where
// many numbers share a slot it is a binary search.
//
// Takes 4 bytes an element and at most 1 more for the slots. Immutable once finished; every const
// method is safe from any number of threads.
class SlottedArray {
 public:
  // `size` elements, to be set before Finish is called. Throws std::bad_alloc.
  explicit SlottedArray(size_t size);

  uint32_t& operator[](size_t i) { return elements_[i]; }
  // Elements that do not ascend make wrong answers, but none beyond size(). Requires each to be at
  // most `greatest`. Throws std::bad_alloc.
  void Finish(uint32_t greatest);

  size_t size() const { return size_; }
  uint32_t operator[](size_t i) const { return elements_[i]; }

  // lower[i] = how many elements are less than numbers[i], each at most `greatest`. Writes to
  // `equal` the i of those numbers that are among the elements, ascending, and returns how many.
  // All three are as long.
  size_t LowerBound(absl::Span<const uint32_t> numbers, absl::Span<uint32_t> lower,
                    absl::Span<uint32_t> equal) const;

  uint64_t memory_bytes() const { return (elements_.size() + slots_.size()) * sizeof(uint32_t); }

  // What follows is for slotted_array.cc.

  // Elements that are compared at once, from a slot's first one on.
  static constexpr size_t kCompared = 16;

  struct View {
    const uint32_t* elements;  // and kCompared more, above all others
    const uint32_t* slots;     // the first element of each, and of all behind the last
    int log2_slot;
  };

 private:
  static constexpr uint64_t kElementsPerSlot = 4;  // at least, on average

  SimdLevel level_ = SimdLevel::kScalar;
  size_t size_;
  int log2_slot_ = 0;
  AlignedBuffer<uint32_t> elements_;
  AlignedBuffer<uint32_t> slots_;
};

}  // namespace cairn
