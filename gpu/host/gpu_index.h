#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/host/host_batch.h"

namespace cairn::gpu {

// A device's structure as an OrderedIndex: batches of the host are taken to it and its answers
// brought back. Each call leases a context of its own (query_context.h), so
// any number of threads query at once.
//
// Besides an OrderedIndex's errors: ResourceExhausted where memory of the device or pinned memory
// does not suffice, which a later call may not meet. Unavailable where the device is lost, by an
// exception of the hardware or of any kernel of this process: CUDA gives every later call the same
// error until the process ends, so no batch is answered here any more. Internal where CUDA fails
// otherwise. Whatever is returned, nothing is in flight afterwards: the caller's memory is its own.
class GpuIndex : public OrderedIndex {
 public:
  // Requires that `index` be over the run's entries.
  GpuIndex(SortedRun run, std::unique_ptr<const DeviceIndex> index,
           const HostBatchPolicy& policy = {});

  std::string description() const override;
  // Of memory of the device.
  uint64_t memory_bytes() const override { return index_->memory_bytes(); }

  absl::Status Execute(const Batch& batch) const override;

 private:
  // All require a batch that has been checked and is not empty.
  //
  // Has the index answer points with one column of `results`.
  absl::Status Points(const Batch& batch, HostColumn results, QueryContext& context) const;
  absl::Status Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                         absl::Span<Position> end, QueryContext& context) const;
  // The same of keys of bytes.
  absl::Status StringPoints(const Batch& batch, HostColumn results, QueryContext& context) const;
  absl::Status StringPositions(const RangeBatch& ranges, absl::Span<Position> begin,
                               absl::Span<Position> end, QueryContext& context) const;
  absl::Status Rows(const RangeBatch& ranges, const QueryOptions& options, FindResult* matches,
                    QueryContext& context) const;

  const std::unique_ptr<const DeviceIndex> index_;
  const HostBatchPolicy policy_;
  const size_t longest_key_;  // in bytes; of keys of bytes
};

}  // namespace cairn::gpu
