#pragma once

#include <bit>
#include <cstdint>

namespace cairn {

// std::bit_width and std::bit_floor of 64-bit integers for code that is also compiled for kernels:
// nvcc 13 silently compiles those of libstdc++ (GCC 12) to return 0 on the device.
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
