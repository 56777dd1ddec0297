#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

namespace cairn {

// Masks for the first i of kLanes values, 0 <= i <= kLanes: Masks<T, kLanes>::First(i) points to i
// elements of all ones, followed by zeros. A masked read costs the same for every i and has no
// branch that could be mispredicted.
template <typename T, size_t kLanes>
struct LaneMasks {
  static_assert(std::is_unsigned_v<T>);

  static const T* First(size_t i) { return kMasks.data() + (kLanes - i); }

 private:
  static constexpr std::array<T, 2 * kLanes> Make() {
    std::array<T, 2 * kLanes> masks = {};
    for (size_t i = 0; i < kLanes; ++i) masks[i] = static_cast<T>(~T{0});
    return masks;
  }
  static constexpr std::array<T, 2 * kLanes> kMasks = Make();
};

}  // namespace cairn
