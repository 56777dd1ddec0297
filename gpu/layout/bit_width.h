#pragma once

#include <bit>
#include <cstdint>

namespace cairn {

// std::bit_width and std::bit_floor of 64-bit numbers for code that kernels use too: nvcc 13 makes
// libstdc++'s (GCC 12) give 0 on the device, without a word.
constexpr int BitWidth(uint64_t x) {
#ifdef __CUDA_ARCH__
  return 64 - __clzll(static_cast<long long>(x));
#else
  return static_cast<int>(std::bit_width(x));
#endif
}
constexpr uint64_t BitFloor(uint64_t x) {
  return x == 0 ? 0 : uint64_t{1} << (BitWidth(x) - 1);
}

}  // namespace cairn
