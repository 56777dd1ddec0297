#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "cairn/query.h"
#include "gpu/host/query_context.h"

namespace cairn::gpu {

// How host-memory batches are transferred to the device. The defaults are from Response/gpu:... on
// an H200 with PCIe 5; tests and benchmarks set their own.
struct HostBatchPolicy {
  // Up to this many queries, the kernel reads keys and writes results directly in pinned host
  // memory, which is the caller's own if it is pinned. Larger batches are copied in chunks, with
  // several in flight at a time.
  size_t max_zero_copy = size_t{1} << 18;
  // Up to this many queries, the calling thread polls for each result and does not wait for the
  // kernel to end.
  size_t max_polled = size_t{1} << 10;
  // A chunk has about 1/chunks of its batch, within the bounds below. max_chunk is for pinned
  // memory of the caller, max_staged_chunk for other memory, which is copied through pinned memory.
  size_t chunks = 4;
  size_t min_chunk = size_t{1} << 16;
  size_t max_chunk = size_t{1} << 20;
  size_t max_staged_chunk = size_t{1} << 21;
  // Queries of a chunk of strings: few enough that the chunk stays in the caches while it is
  // measured, gathered and copied.
  size_t max_string_chunk = size_t{1} << 19;
  // Up to this many rows of a scan, the calling thread copies the row ids from the run, once their
  // positions are known. If there are more, the device copies them in pieces of up to piece_ranges
  // ranges and piece_rows rows.
  size_t max_rows_from_run = size_t{1} << 20;
  size_t piece_ranges = size_t{1} << 18;
  size_t piece_rows = size_t{1} << 20;
};

// An array of the caller with one element per query of a batch.
struct HostColumn {
  void* data;  // never written if the column is an input
  size_t element_bytes;
};

// Bytes per integer key.
inline size_t KeyBytes(PhysicalType kind) {
  return kind == PhysicalType::kU32 ? sizeof(uint32_t) : sizeof(uint64_t);
}
// The `count` integer keys in `memory` of a device.
inline DeviceKeys KeysIn(PhysicalType kind, const void* memory, size_t count) {
  return kind == PhysicalType::kU32 ? DeviceKeys(static_cast<const uint32_t*>(memory), count)
                                    : DeviceKeys(static_cast<const uint64_t*>(memory), count);
}
// The integer keys of a batch as an input.
inline HostColumn InputOf(const KeyBatch& keys) {
  const void* const data = keys.kind() == PhysicalType::kU32
                               ? static_cast<const void*>(keys.u32().data())
                               : static_cast<const void*>(keys.u64().data());
  return {const_cast<void*>(data), KeyBytes(keys.kind())};
}
// A batch of point queries with results as a DeviceIndex writes them.
inline DeviceBatch PointBatch(Operation operation, DeviceKeys keys, void* answers) {
  DeviceBatch batch{operation, keys};
  batch.values = static_cast<uint32_t*>(answers);
  batch.found = static_cast<bool*>(answers);
  return batch;
}

// A batch of queries with its results, all in host memory.
struct HostBatch {
  size_t size = 0;
  absl::Span<const HostColumn> inputs;   // one or two
  absl::Span<const HostColumn> outputs;  // one or two
  // Whether each element of the outputs is written once (DeviceIndex::writes_results_once).
  bool written_once = false;
  // Writes elements [first, first + count) of input i to `to`. Used for inputs with null data;
  // other inputs are the content of their arrays.
  absl::FunctionRef<void(size_t i, size_t first, size_t count, void* to)> fill;
  // Enqueues the search for `count` queries whose columns are `in` and `out`.
  absl::FunctionRef<absl::Status(const void* const* in, void* const* out, size_t count,
                                 cudaStream_t stream)>
      search;
};

// Executes the batch. Waits; nothing is in flight afterwards, whatever is returned. Errors:
// ResourceExhausted if device memory or pinned memory runs out; Unavailable if the device is lost.
absl::Status RunHostBatch(const HostBatch& batch, const HostBatchPolicy& policy,
                          QueryContext& context);

// Copies host memory, on several threads if that is faster.
void CopyOnHost(void* to, const void* from, size_t bytes);

}  // namespace cairn::gpu
