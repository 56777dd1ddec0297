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
  int fan_out = 9;  // as IsSearchFanOut
  // Unless told, pairs for 32-bit keys, of which eight are a line of 64 bytes with their row ids;
  // columns for 64-bit keys, of which eight are one without.
  std::optional<EntryLayout> layout;
};

// A run's entries in K-ary Eytzinger order (gpu/layout/eytzinger_layout.h): EO+BS and EO+KS of
// Henneberg and Schuhknecht, "Is Binary Search Really All You Need?" (2025). It takes the run's
// memory and nothing else, but, while it is built, as much again. InvalidArgument for another
// fan-out. Enqueued on `stream`.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildEytzingerTree(DeviceRun<Key> run,
                                                                const EytzingerTreeOptions& options,
                                                                cudaStream_t stream);

}  // namespace cairn::gpu
