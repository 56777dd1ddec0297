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
// option device= names (default 0). If `devices` is not empty, builds it on each of these devices
// instead, as one index that splits batches across them (cairn/device/group.h); the factory string
// must not have device= then. In this case the index's description ends in the devices and the
// number of lost ones. Errors: those of MakeOrderedIndex and DeviceGroup::Replicate.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeGpuIndex(FactoryString factory, SortedRun run,
                                                           absl::Span<const int> devices = {});

// The device memory that an index needs, in bytes.
struct DeviceBytes {
  uint64_t building = 0;  // peak during the build
  uint64_t resident = 0;  // OrderedIndex::memory_bytes
};

// Upper bounds for the memory that MakeGpuIndex needs for gpu:auto, gpu:packed and gpu:partial_key,
// with their options. The bounds are never too low; packed_size.h and string_index.h document by
// how much they may be too high. Reads the run's keys once, on up to `threads` threads (0: one per
// core), and does not use a device. Errors: Unimplemented for other structures and wherever
// MakeGpuIndex returns it; InvalidArgument like MakeGpuIndex; DataLoss for gpu:partial_key;
// Unavailable in a build without CUDA.
absl::StatusOr<DeviceBytes> PredictDeviceBytes(FactoryString factory, const SortedRun& run,
                                               int threads = 0);

}  // namespace cairn::gpu
