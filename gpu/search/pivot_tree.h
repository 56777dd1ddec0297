#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"
#include "gpu/run/entry_array.h"

namespace cairn::gpu {

struct PivotTreeOptions {
  // As IsSearchFanOut: eight keys and row ids are a line of 64 bytes.
  int fan_out = 9;
  // Levels of pivots; as many as there can be, but for a fan-out of 2, where the last four are
  // left out, if negative.
  int levels = -1;
  // Pairs: a lookup finds the row id beside its key, in a line that it has read anyway. Columns
  // make ranges faster, which then read no keys.
  EntryLayout layout = EntryLayout::kAoS;
};

// A run's entries with a buffer of pivots above them (gpu/layout/pivot_layout.h): AO+PB+BS and
// AO+PB+KS of Henneberg and Schuhknecht, "Is Binary Search Really All You Need?" (2025). The buffer
// takes one part in fan_out - 1 of the keys' bytes. InvalidArgument for another fan-out. Enqueued
// on `stream`.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPivotTree(DeviceRun<Key> run,
                                                            const PivotTreeOptions& options,
                                                            cudaStream_t stream);

}  // namespace cairn::gpu
