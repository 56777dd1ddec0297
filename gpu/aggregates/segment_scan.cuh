#pragma once

#include <cstdint>
#include <type_traits>

namespace cairn::gpu {

// How values come together: doubles are added, numbers give the least.
template <typename Value>
__device__ inline Value Combine(Value a, Value b) {
  if constexpr (std::is_floating_point_v<Value>) {
    return a + b;
  } else {
    return a < b ? a : b;
  }
}
// What changes nothing.
template <typename Value>
constexpr Value Nothing() {
  return std::is_floating_point_v<Value> ? Value{0} : static_cast<Value>(~uint64_t{0});
}

// A stretch of values that a scan has come over: how many segments begin in it, and what the last
// one comes to.
template <typename Value>
struct Segments {
  Value value;
  uint32_t heads;
};
template <typename Value>
struct JoinSegments {
  __device__ Segments<Value> operator()(const Segments<Value>& a, const Segments<Value>& b) const {
    return {b.heads != 0 ? b.value : Combine(a.value, b.value), a.heads + b.heads};
  }
};

}  // namespace cairn::gpu
