#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/host/host_batch.h"

namespace cairn::gpu {

// A device structure as an OrderedIndex: copies host-memory batches to the device and the results
// back. Each call leases a context of its own (query_context.h), so any number of threads can query
// concurrently.
//
// Errors: those of an OrderedIndex, plus: ResourceExhausted if device memory or pinned memory runs
// out; a later call may succeed. Unavailable if the device is lost, after an exception of the
// hardware or of any kernel of this process: CUDA then returns the same error from every later call
// until the process ends, so this index no longer executes batches. Internal for other CUDA errors.
// Nothing is in flight after a call returns, whatever it returns, so the caller may free or reuse
// its memory.
class GpuIndex : public OrderedIndex {
 public:
  // Requires that `index` has the run's entries.
  GpuIndex(SortedRun run, std::unique_ptr<const DeviceIndex> index,
           const HostBatchPolicy& policy = {});

  std::string description() const override;
  // In device memory.
  uint64_t memory_bytes() const override { return index_->memory_bytes(); }

  absl::Status Execute(const Batch& batch) const override;

 private:
  // All functions below require a checked, non-empty batch.
  //
  // Executes point queries and writes one column of results.
  absl::Status Points(const Batch& batch, HostColumn results, QueryContext& context) const;
  absl::Status Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                         absl::Span<Position> end, QueryContext& context) const;
  // The same for byte-string keys.
  absl::Status StringPoints(const Batch& batch, HostColumn results, QueryContext& context) const;
  absl::Status StringPositions(const RangeBatch& ranges, absl::Span<Position> begin,
                               absl::Span<Position> end, QueryContext& context) const;
  absl::Status Rows(const RangeBatch& ranges, const QueryOptions& options, FindResult* matches,
                    QueryContext& context) const;

  const std::unique_ptr<const DeviceIndex> index_;
  const HostBatchPolicy policy_;
  const size_t longest_key_;  // in bytes; for byte-string keys
};

}  // namespace cairn::gpu
