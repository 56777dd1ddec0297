#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"
#include "gpu/api/gpu_factory.h"
#include "index/query/factory_string.h"

// The structures for byte-string keys. gpu:packed takes keys that can be encoded as integers of up
// to 128 bits (gpu/text/text_code.h); gpu:partial_key takes all keys. gpu:auto uses the former if
// possible, but the latter if `hash` is requested.

namespace cairn::gpu {

// OK if the factory string names one of them, otherwise Unimplemented.
absl::Status CheckForBytes(const FactoryString& factory);

// Builds the structure on the current device, on up to `threads` threads of the host. The option
// device= must have been removed from the factory string. Errors: those of MakeDeviceIndex.
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromBytes(FactoryString factory,
                                                            const SortedRun& run, int threads,
                                                            cudaStream_t stream);

// PredictDeviceBytes for byte-string keys.
absl::StatusOr<DeviceBytes> PredictFromBytes(FactoryString factory, const SortedRun& run,
                                             int threads);

}  // namespace cairn::gpu
