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

// A batch of byte strings with one result each, in host memory.
struct StringBatch {
  size_t size = 0;
  const StringSource* strings = nullptr;
  size_t longest = 0;  // maximum length of the strings, in bytes
  HostColumn results = {};
  // Enqueues the search for queries in device memory.
  absl::FunctionRef<absl::Status(DeviceKeys keys, void* results, cudaStream_t stream)> search;
};

// Executes the batch in chunks. The strings of a chunk are gathered in pinned memory on several
// threads, while other chunks are copied or searched. A chunk has as many queries as the policy
// allows, or fewer if their strings are long. Waiting and errors are those of RunHostBatch.
absl::Status RunStringBatch(const StringBatch& batch, const HostBatchPolicy& policy,
                            QueryContext& context);

}  // namespace cairn::gpu
