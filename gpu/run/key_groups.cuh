#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::gpu {

// Keys that a thread reads with one instruction.
template <typename Key>
inline constexpr int kKeyGroup = 16 / static_cast<int>(sizeof(Key));

// Calls body(first, keys, count) for every group of adjacent keys that starts at a multiple of
// kKeyGroup, in some thread of the grid. keys[1 + j] is key first + j for j < count, and keys[0] is
// the key before them, or unspecified if first is 0. All threads of a warp make the same number of
// calls; `count` is 0 if no keys are left. `keys` must be aligned to 16 bytes.
template <typename Key, typename Body>
__device__ inline void ForEachKeyGroup(const Key* keys, size_t size, Body body) {
  constexpr int kGroup = kKeyGroup<Key>;
  constexpr size_t kWarpKeys = 32 * kGroup;
  const size_t stride = size_t{gridDim.x} * blockDim.x * kGroup;
  const size_t end = (size + kWarpKeys - 1) / kWarpKeys * kWarpKeys;
  for (size_t first = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) * kGroup; first < end;
       first += stride) {
    Key group[1 + kGroup];
    const int count = first >= size ? 0 : static_cast<int>(min(size - first, size_t{kGroup}));
    group[0] = first == 0 || count == 0 ? Key{0} : keys[first - 1];
    if constexpr (sizeof(Key) == 16) {
      group[1] = count != 0 ? keys[first] : Key{0};
    } else if (count == kGroup) {
      const uint4 words = *reinterpret_cast<const uint4*>(keys + first);
      if constexpr (sizeof(Key) == 4) {
        group[1] = words.x, group[2] = words.y, group[3] = words.z, group[4] = words.w;
      } else {
        group[1] = Key{words.y} << 32 | words.x;
        group[2] = Key{words.w} << 32 | words.z;
      }
    } else {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) group[1 + j] = j < count ? keys[first + j] : Key{0};
    }
    body(first, group, count);
  }
}

}  // namespace cairn::gpu
