#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"
#include "gpu/api/gpu_factory.h"
#include "index/query/factory_string.h"

// The structures for keys of bytes: gpu:packed, of keys that have numbers of up to 128 bits
// (gpu/text/text_code.h), gpu:partial_key, and gpu:auto, which is the former where it can be, and
// the latter where `hash` is asked for.

namespace cairn::gpu {

// OK where the factory string names one of them; else Unimplemented.
absl::Status CheckForBytes(const FactoryString& factory);

// Builds the structure on the current device, on up to `threads` threads; the option device= is
// taken. Errors as MakeDeviceIndex's.
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromBytes(FactoryString factory,
                                                            const SortedRun& run, int threads,
                                                            cudaStream_t stream);

// PredictDeviceBytes for it.
absl::StatusOr<DeviceBytes> PredictFromBytes(FactoryString factory, const SortedRun& run,
                                             int threads);

}  // namespace cairn::gpu
