#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/device/index_group.h"
#include "cairn/types.h"

namespace cairn::gpu {

// Bounds and estimate of the number of a column's entries that match a comparison.
struct EntryEstimate {
  uint64_t least = 0;
  uint64_t most = 0;
  double expected = 0;
};

// A sample of a column's sorted keys, evenly spaced, including the first and the last key. With it,
// the host estimates the number of keys in a range without querying the device.
class KeySample {
 public:
  static constexpr uint64_t kMaxKeys = 4096;
  static constexpr uint64_t SizeFor(uint64_t entries) {
    return entries < kMaxKeys ? entries : kMaxKeys;
  }
  // The number of the entry that is key i of the sample.
  static constexpr uint64_t PositionOf(uint64_t i, uint64_t entries) {
    return entries <= kMaxKeys ? i : i * (entries - 1) / (kMaxKeys - 1);
  }

  KeySample() = default;  // no entries
  // Requires SizeFor(entries) keys, those at PositionOf(0), PositionOf(1), …
  KeySample(uint64_t entries, std::vector<uint64_t> keys)
      : entries_(entries), keys_(std::move(keys)) {}

  uint64_t entries() const { return entries_; }
  // `least` and `most` are exact bounds. `expected` assumes that keys are evenly distributed
  // between those of the sample.
  EntryEstimate Estimate(DeviceKeyRange range) const;

 private:
  // The number of keys less than `key`.
  EntryEstimate Below(uint64_t key) const;

  uint64_t entries_ = 0;
  std::vector<uint64_t> keys_;
};

}  // namespace cairn::gpu
