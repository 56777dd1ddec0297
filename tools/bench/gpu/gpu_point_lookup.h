#pragma once

#include <cstdint>
#include <string>

#include "tools/bench/gpu/device_data.h"

namespace cairn::bench {

// The answer of a batch of point queries.
enum class DeviceAnswer : uint8_t {
  kRowId,     // FindFirst
  kPosition,  // LowerBound
  kContains,  // Contains
  kFindAll,   // PlanScan and CopyRows, of 2^24 keys, including the wait for the number of rows
  kFind,      // the same by Scan
};

// One benchmark PointLookup/<index>/<key>/n:<log2 n>/<answer>[/<key set>][/<query mix>]
// [/<strategy>[,bits=<b>][,key_order]].
struct DeviceLookup {
  std::string index;  // a factory string gpu:…, or baseline:…
  int log2_n;
  DeviceAnswer answer = DeviceAnswer::kRowId;
  KeySet set = KeySet::kUniform;
  QueryMix mix = QueryMix::kHits;
  // Strategies other than kUnbuffered require gpu:… and row ids.
  DeviceStrategyOptions way = {};
};

// Registers it, for uint32_t or uint64_t keys, if there is a device. Call from RegisterInMain.
template <typename Key>
void RegisterDeviceLookup(const DeviceLookup& lookup);

}  // namespace cairn::bench
