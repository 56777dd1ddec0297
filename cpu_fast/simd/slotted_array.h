#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// Ascending numbers, duplicates allowed, under a directory with one slot per 2^n values of the
// value range. The lower bound of a number reads its slot and one cache line. If many numbers share
// a slot, it is a binary search.
//
// Takes 4 bytes per element and at most 1 more for the slots. Immutable once finished; every const
// method is thread-safe.
class SlottedArray {
 public:
  // Creates `size` elements, which must be set before Finish is called. Throws std::bad_alloc.
  explicit SlottedArray(size_t size);

  uint32_t& operator[](size_t i) { return elements_[i]; }
  // Builds the directory. Requires each element to be at most `greatest`. If elements do not
  // ascend, lookups give wrong results, but never more than size(). Throws std::bad_alloc.
  void Finish(uint32_t greatest);

  size_t size() const { return size_; }
  uint32_t operator[](size_t i) const { return elements_[i]; }

  // lower[i] = the number of elements less than numbers[i]. Each number must be at most `greatest`.
  // Writes to `equal` the positions i of those numbers that are among the elements, ascending, and
  // returns how many there are. All three spans must have the same length.
  size_t LowerBound(absl::Span<const uint32_t> numbers, absl::Span<uint32_t> lower,
                    absl::Span<uint32_t> equal) const;

  uint64_t memory_bytes() const { return (elements_.size() + slots_.size()) * sizeof(uint32_t); }

  // The rest of the public section is for slotted_array.cc.

  // Elements that are compared at once, starting with the first of a slot.
  static constexpr size_t kCompared = 16;

  struct View {
    const uint32_t* elements;  // followed by kCompared padding elements of the maximum value
    const uint32_t* slots;     // the first element of each slot, then the end of the last slot
    int log2_slot;
  };

 private:
  static constexpr uint64_t kElementsPerSlot = 4;  // minimum on average

  SimdLevel level_ = SimdLevel::kScalar;
  size_t size_;
  int log2_slot_ = 0;
  AlignedBuffer<uint32_t> elements_;
  AlignedBuffer<uint32_t> slots_;
};

}  // namespace cairn
