#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/device/aggregates.h"
#include "gpu/run/device_run.h"

namespace cairn::gpu {

// Builds DeviceAggregates over a run, whose row ids are indexes into the columns' values. Waits.
// Key is uint32_t or uint64_t. Errors: those of MakeDeviceAggregates.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceAggregates>> BuildAggregates(
    DeviceRun<Key> run, absl::Span<const DeviceColumn> columns,
    absl::Span<const DeviceAggregate> aggregates, cudaStream_t stream);

}  // namespace cairn::gpu
