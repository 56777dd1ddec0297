#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "cpu_fast/part_map.h"
#include "index/aligned_buffer.h"

namespace cairn {

// Memory that the strategies (cpu_fast/strategy.h) reuse from call to call. It belongs to one
// caller at a time; indexes and kinds of keys may change between calls.
class StrategyScratch {
 public:
  // The last call's batch in key order, where results were asked for in it: the place in the batch
  // of each result's key. Equal keys keep the batch's order. Valid until the next call.
  absl::Span<const uint32_t> permutation() const { return permutation_; }

  // Bytes of what grows with the batch.
  uint64_t memory_bytes() const {
    uint64_t bytes = 0;
    for (const auto& array : arrays_) bytes += array.size() * sizeof(uint64_t);
    return bytes;
  }

  // What follows is for the strategies.

  enum class Role : uint8_t { kEntries, kKeys, kSlots, kAnswers, kFill, kCount };

  // `size` elements for a role, uninitialised; those that the role had before are gone. Throws
  // std::bad_alloc.
  template <typename T>
  absl::Span<T> Take(Role role, size_t size) {
    static_assert(std::is_trivially_copyable_v<T>);
    AlignedBuffer<uint64_t>& array = arrays_[static_cast<size_t>(role)];
    const size_t words = (size * sizeof(T) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    if (array.size() < words) {
      array = {};  // so that both are not there at a time
      array = AlignedBuffer<uint64_t>(words);
    }
    return {reinterpret_cast<T*>(array.data()), size};
  }
  template <typename Key>
  PartMap<Key>& part_map() {
    if constexpr (sizeof(Key) == 4) {
      return part_map32_;
    } else {
      return part_map64_;
    }
  }
  void set_permutation(absl::Span<const uint32_t> permutation) { permutation_ = permutation; }

 private:
  std::array<AlignedBuffer<uint64_t>, static_cast<size_t>(Role::kCount)> arrays_;
  PartMap<uint32_t> part_map32_;
  PartMap<uint64_t> part_map64_;
  absl::Span<const uint32_t> permutation_;
};

}  // namespace cairn
