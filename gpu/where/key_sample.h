#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/device/index_group.h"
#include "cairn/types.h"

namespace cairn::gpu {

// How many of a column's entries a comparison has.
struct EntryEstimate {
  uint64_t least = 0;
  uint64_t most = 0;
  double expected = 0;
};

// Some of a column's sorted keys, evenly spaced, the first and the last among them, from which the
// host tells how many lie in a range without asking the device.
class KeySample {
 public:
  static constexpr uint64_t kMaxKeys = 4096;
  static constexpr uint64_t SizeFor(uint64_t entries) {
    return entries < kMaxKeys ? entries : kMaxKeys;
  }
  // Which entry the sample's key i is.
  static constexpr uint64_t PositionOf(uint64_t i, uint64_t entries) {
    return entries <= kMaxKeys ? i : i * (entries - 1) / (kMaxKeys - 1);
  }

  KeySample() = default;  // of no entries
  // Requires SizeFor(entries) keys, those at PositionOf(0), PositionOf(1), …
  KeySample(uint64_t entries, std::vector<uint64_t> keys)
      : entries_(entries), keys_(std::move(keys)) {}

  uint64_t entries() const { return entries_; }
  // Right about `least` and `most`; `expected` takes keys to be spread evenly between those of the
  // sample.
  EntryEstimate Estimate(DeviceKeyRange range) const;

 private:
  // How many keys are less than `key`.
  EntryEstimate Below(uint64_t key) const;

  uint64_t entries_ = 0;
  std::vector<uint64_t> keys_;
};

}  // namespace cairn::gpu
