#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"
#include "gpu/run/entry_array.h"

namespace cairn::gpu {

struct EytzingerTreeOptions {
  int fan_out = 9;  // see IsSearchFanOut
  // Default: pairs for 32-bit keys, because eight keys with their row ids are a line of 64 bytes;
  // columns for 64-bit keys, because eight keys are a line.
  std::optional<EntryLayout> layout;
};

// A run's entries in K-ary Eytzinger order (gpu/layout/eytzinger_layout.h): EO+BS and EO+KS of
// Henneberg and Schuhknecht, "Is Binary Search Really All You Need?" (2025). Needs only the run's
// memory, and as much again during the build. Enqueued on `stream`. Errors: InvalidArgument for any
// other fan-out.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildEytzingerTree(DeviceRun<Key> run,
                                                                const EytzingerTreeOptions& options,
                                                                cudaStream_t stream);

}  // namespace cairn::gpu
