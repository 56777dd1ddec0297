#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/host/host_batch.h"
#include "gpu/host/query_context.h"

namespace cairn::gpu {

// A byte string to search for: some bytes, and maybe one more.
struct StringKey {
  static constexpr int kNoByte = -1;

  std::string_view bytes;
  int last = kNoByte;

  size_t size() const { return bytes.size() + (last == kNoByte ? 0 : 1); }
};

// A batch of byte strings with a result for each, in memory of the host.
struct StringBatch {
  size_t size = 0;
  // Of the index's keys, in bytes. Of longer queries one byte more is searched for: it tells that
  // they are none, and where they would be.
  size_t longest_key = 0;
  HostColumn results;
  // Query i; called from several threads.
  absl::FunctionRef<StringKey(size_t i)> key;
  // Enqueues the search for some queries in device memory.
  absl::FunctionRef<absl::Status(DeviceKeys keys, void* results, cudaStream_t stream)> search;
};

// Answers the batch, in chunks whose strings are put together in pinned memory on several threads
// while others are on their way or searched. As RunHostBatch.
absl::Status RunStringBatch(const StringBatch& batch, const HostBatchPolicy& policy,
                            QueryContext& context);

}  // namespace cairn::gpu
