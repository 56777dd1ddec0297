#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"

namespace cairn::gpu {

// A tree of 64-byte nodes over a run's key column ("gpu:fast"): Kim et al., FAST (SIGMOD 2010),
// section 5.2. Four adjacent lanes search each node with one 16-byte load each; the paper uses one
// lane per key. Nodes are in level order, because page blocking has no effect on GPUs, as the paper
// also finds (the benchmark has other blockings and lane counts). The inner nodes take 1/15 of the
// keys' bytes, or 1/7 for 64-bit keys. Enqueued on `stream`.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFastTree(DeviceRun<Key> run, cudaStream_t stream);

}  // namespace cairn::gpu
