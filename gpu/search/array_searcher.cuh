#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "gpu/layout/bit_width.h"
#include "gpu/run/entry_array.h"
#include "gpu/runtime/launch.h"
#include "gpu/search/search_kernel.cuh"

namespace cairn::gpu {

// Searches entries in run order, one thread per query, by offset-based binary search: Listing 1 of
// Henneberg and Schuhknecht (2025), from the end backward in ever smaller powers of two. Unlike the
// listing, it starts past the last entry, so that a key greater than all keys finds the end.
//
// Let 2^k be the lowest power of two greater than the size. The first m steps read the entries at
// multiples of 2^(k - m) before the end. These are pinned densely (section 4.2.1). Full pinning
// also pins as many as fit of the additional entries that step m + 1 reads: odd multiples of half
// that distance.
template <typename Key, EntryLayout kLayout>
struct ArraySearcher {
  using DataType = Key;
  using Slot = uint32_t;  // a position
  static constexpr int kLanes = 1;

  EntryView<Key, kLayout> entries;
  uint32_t size = 0;
  uint32_t first_step = 0;     // greatest power of two up to the size
  uint32_t pinned_step = 0;    // the last step whose entries are all pinned
  uint32_t pinned_whole = 0;   // number of entries that the steps down to pinned_step read
  uint32_t pinned_partly = 0;  // number of pinned entries of the next step

  ArraySearcher(EntryView<Key, kLayout> view, size_t entry_count)
      : entries(view),
        size(static_cast<uint32_t>(entry_count)),
        first_step(static_cast<uint32_t>(BitFloor(entry_count))) {}

  // Pins as many entries as fit `bytes` of shared memory.
  void PinUpTo(size_t bytes, Pinning pinning) {
    const size_t fits = bytes / sizeof(Key);
    pinned_step = pinned_whole = pinned_partly = 0;
    for (uint32_t step = first_step; step > 0 && size / step <= fits; step >>= 1) {
      pinned_step = step;
      pinned_whole = size / step;
    }
    const uint32_t next = pinned_step >> 1;
    if (pinning != Pinning::kFull || next == 0) return;
    const size_t odd = (size / next + 1) / 2;
    pinned_partly = static_cast<uint32_t>(odd < fits - pinned_whole ? odd : fits - pinned_whole);
  }

  __host__ __device__ size_t pinned_bytes() const {
    return (size_t{pinned_whole} + pinned_partly) * sizeof(Key);
  }

  // pinned[i] = the entry i + 1 pinned steps before the end; then those at odd halves of a step.
  __device__ void Pin(void* shared) const {
    Key* pinned = static_cast<Key*>(shared);
    for (uint32_t i = threadIdx.x; i < pinned_whole; i += blockDim.x) {
      pinned[i] = entries.key(size - (i + 1) * pinned_step);
    }
    for (uint32_t i = threadIdx.x; i < pinned_partly; i += blockDim.x) {
      pinned[pinned_whole + i] = entries.key(size - (2 * i + 1) * (pinned_step / 2));
    }
  }

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                             const void* pinned) const {
#pragma unroll
    for (int i = 0; i < kQueries; ++i) slots[i] = size;
    uint32_t step = first_step;
    if (pinned != nullptr) step = SearchPinned<kQueries>(queries, slots, pinned);
    for (; step > 0; step >>= 1) {
      Step<kQueries>(queries, slots, step, [&](int, uint32_t at) { return entries.key(at); });
    }
  }

  __device__ Position position(Slot slot) const {
    return slot;
  }
  __device__ bool Equals(Slot slot, Key key) const {
    return slot < size && entries.key(slot) == key;
  }
  __device__ RowId row_id(Slot slot) const {
    return entries.row_id(slot);
  }

 private:
  // Moves back by a step if the entry there is not less than the query; read(query, position)
  // returns its key.
  template <int kQueries, typename Read>
  __device__ static void Step(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                              uint32_t step, Read read) {
    Key keys[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      keys[i] = step <= slots[i] ? read(i, slots[i] - step) : Key{0};
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      if (step <= slots[i] && keys[i] >= queries[i]) slots[i] -= step;
    }
  }

  // Executes the pinned steps; returns the next step.
  template <int kQueries>
  __device__ uint32_t SearchPinned(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                                   const void* shared) const {
    const Key* pinned = static_cast<const Key*>(shared);
    if (pinned_step == 0) return first_step;
    const int shift = __ffs(static_cast<int>(pinned_step)) - 1;
    uint32_t step = first_step;
    for (; step >= pinned_step; step >>= 1) {
      Step<kQueries>(queries, slots, step,
                     [&](int, uint32_t at) { return pinned[((size - at) >> shift) - 1]; });
    }
    if (pinned_partly == 0) return step;
    Step<kQueries>(queries, slots, step, [&](int, uint32_t at) {
      const uint32_t odd = (size - at) >> shift;
      return odd < pinned_partly ? pinned[pinned_whole + odd] : entries.key(at);
    });
    return step >> 1;
  }
};

}  // namespace cairn::gpu
