#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gpu/host/query_context.h"

namespace cairn::gpu {

// How batches of the host get to the device. The defaults are what Response/gpu:... measured on an
// H200 behind PCIe 5; tests and benchmarks set their own.
struct HostBatchPolicy {
  // Up to so many queries the kernel reads keys and writes results in pinned memory of the host,
  // the caller's own if it is; larger batches are copied in chunks, several under way at a time.
  size_t max_zero_copy = size_t{1} << 18;
  // Up to so many the calling thread does not wait for the kernel's end, but for each result.
  size_t max_polled = size_t{1} << 10;
  // A chunk is about this part of its batch, within these bounds: for memory of the caller that is
  // pinned, and for other, which goes by way of pinned memory of ours.
  size_t chunks = 4;
  size_t min_chunk = size_t{1} << 16;
  size_t max_chunk = size_t{1} << 20;
  size_t max_staged_chunk = size_t{1} << 21;
  // Of strings: so few that a chunk stays in the caches between being measured, put together and
  // copied.
  size_t max_string_chunk = size_t{1} << 19;
  // Up to so many rows of a scan are copied by the calling thread from the run, once their
  // positions are known; more by the device, in pieces of so many ranges and rows.
  size_t max_rows_from_run = size_t{1} << 20;
  size_t piece_ranges = size_t{1} << 18;
  size_t piece_rows = size_t{1} << 20;
};

// An array of the caller's with an element for each query of a batch.
struct HostColumn {
  void* data;  // not written to where it is an input
  size_t element_bytes;
};

// A batch of queries with their results, all in memory of the host.
struct HostBatch {
  size_t size = 0;
  absl::Span<const HostColumn> inputs;   // one or two
  absl::Span<const HostColumn> outputs;  // likewise
  // Whether each element of the outputs is written once (DeviceIndex::writes_results_once).
  bool written_once = false;
  // Writes elements [first, first + count) of input i to `to`, where they are not simply what its
  // array holds; null data says so.
  absl::FunctionRef<void(size_t i, size_t first, size_t count, void* to)> fill;
  // Enqueues the search for `count` queries whose columns are `in` and `out`.
  absl::FunctionRef<absl::Status(const void* const* in, void* const* out, size_t count,
                                 cudaStream_t stream)>
      search;
};

// Answers the batch. Waits; nothing is in flight afterwards, whatever is returned.
// ResourceExhausted where memory of the device or pinned memory does not suffice; Unavailable where
// the device is lost.
absl::Status RunHostBatch(const HostBatch& batch, const HostBatchPolicy& policy,
                          QueryContext& context);

// Copies memory of the host, on several threads where that is worth it.
void CopyOnHost(void* to, const void* from, size_t bytes);

}  // namespace cairn::gpu
