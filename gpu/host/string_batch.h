#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/host/host_batch.h"
#include "gpu/host/query_context.h"
#include "gpu/host/string_source.h"

namespace cairn::gpu {

// A batch of byte strings with a result for each, in memory of the host.
struct StringBatch {
  size_t size = 0;
  const StringSource* strings = nullptr;
  size_t longest = 0;  // no string is longer, in bytes
  HostColumn results = {};
  // Enqueues the search for some queries in device memory.
  absl::FunctionRef<absl::Status(DeviceKeys keys, void* results, cudaStream_t stream)> search;
};

// Answers the batch, in chunks whose strings are put together in pinned memory on several threads
// while others are on their way or searched: of so many queries as the policy says, or fewer where
// their strings are long. As RunHostBatch.
absl::Status RunStringBatch(const StringBatch& batch, const HostBatchPolicy& policy,
                            QueryContext& context);

}  // namespace cairn::gpu
