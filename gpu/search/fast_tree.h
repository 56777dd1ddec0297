#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"

namespace cairn::gpu {

// A tree of 64-byte nodes over a run's key column ("gpu:fast"): Kim et al., FAST (SIGMOD 2010),
// section 5.2. Each node is answered by four neighbouring lanes with one 16-byte load each, where
// the paper's GPU wants a lane a key. Nodes are in level order: GPUs do not tell pages apart (as
// the paper finds there too; other blockings and lanes are in the benchmark). The inner nodes take
// 1/15 of the keys' bytes, 1/7 for 64-bit keys. Enqueued on `stream`.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFastTree(DeviceRun<Key> run, cudaStream_t stream);

}  // namespace cairn::gpu
