#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"
#include "gpu/run/entry_array.h"

namespace cairn::gpu {

struct PivotTreeOptions {
  // See IsSearchFanOut: eight keys with their row ids are a line of 64 bytes.
  int fan_out = 9;
  // Levels of pivots. If negative, the maximum, except for a fan-out of 2, where the last four
  // levels are omitted.
  int levels = -1;
  // With pairs, a lookup finds the row id next to its key, in a line that it reads anyway. Columns
  // make ranges faster, because these then read no keys.
  EntryLayout layout = EntryLayout::kAoS;
};

// A run's entries with a buffer of pivots above them (gpu/layout/pivot_layout.h): AO+PB+BS and
// AO+PB+KS of Henneberg and Schuhknecht, "Is Binary Search Really All You Need?" (2025). The buffer
// takes about 1 / (fan_out - 1) of the keys' bytes. Enqueued on `stream`. Errors: InvalidArgument
// for any other fan-out.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPivotTree(DeviceRun<Key> run,
                                                            const PivotTreeOptions& options,
                                                            cudaStream_t stream);

}  // namespace cairn::gpu
