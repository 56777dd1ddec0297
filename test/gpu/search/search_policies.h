#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"

namespace cairn::gpu {

// A structure with a policy of the search kernel, of those that no product structure uses as well.
template <typename Key>
struct PolicySearch {
  std::string name;
  // Builds the structure over a run and queries it. Enqueues on the stream.
  std::function<absl::Status(const DeviceRun<Key>& run, Operation query, DeviceKeys keys,
                             void* results, cudaStream_t stream)>
      search;
};

// Every kind of scheduling, pinning and reordering with every kind of structure, with additional
// fan-outs and groups of all widths. Key is uint32_t or uint64_t.
template <typename Key>
std::vector<PolicySearch<Key>> PolicySearches();

}  // namespace cairn::gpu
