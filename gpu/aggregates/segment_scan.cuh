#pragma once

#include <cstdint>
#include <type_traits>

namespace cairn::gpu {

// Combines values: doubles are added; for integers the minimum is taken.
template <typename Value>
__device__ inline Value Combine(Value a, Value b) {
  if constexpr (std::is_floating_point_v<Value>) {
    return a + b;
  } else {
    return a < b ? a : b;
  }
}
// The neutral element of Combine.
template <typename Value>
constexpr Value Nothing() {
  return std::is_floating_point_v<Value> ? Value{0} : static_cast<Value>(~uint64_t{0});
}

// A range of values that a scan has processed: the number of segments that begin in it, and the
// combined value of the last one.
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
