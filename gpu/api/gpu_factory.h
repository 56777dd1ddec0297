#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/sorted_run.h"
#include "index/query/factory_string.h"

namespace cairn::gpu {

// Builds the structure of a factory string whose device is "gpu" over `run`, on the device that its
// option device= names, 0 unless told; or on each of a list of devices, as one index that splits
// batches over them (cairn/device/group.h), and is not to be given device=. Its description ends in
// the devices then, and in how many of several are lost. Errors as MakeOrderedIndex's, and
// DeviceGroup::Replicate's.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeGpuIndex(FactoryString factory, SortedRun run,
                                                           absl::Span<const int> devices = {});

// What an index takes of its device's memory, in bytes.
struct DeviceBytes {
  uint64_t building = 0;  // at the peak, while it is built
  uint64_t resident = 0;  // OrderedIndex::memory_bytes
};

// Bounds of what MakeGpuIndex would take for gpu:auto, gpu:packed and gpu:partial_key, with their
// options: never less than it does take, and as much more as packed_size.h and string_index.h say.
// Reads the run's keys once, on up to `threads` threads (0: one per core), and asks no device.
// Unimplemented for other structures, and where MakeGpuIndex is; InvalidArgument as there, and
// DataLoss of gpu:partial_key; Unavailable in a build without CUDA.
absl::StatusOr<DeviceBytes> PredictDeviceBytes(FactoryString factory, const SortedRun& run,
                                               int threads = 0);

}  // namespace cairn::gpu
