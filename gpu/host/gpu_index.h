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
// brought back. Keys of fixed width. Each call leases a context of its own (query_context.h), so
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
           const HostBatchPolicy& policy = {})
      : OrderedIndex(std::move(run)), index_(std::move(index)), policy_(policy) {}

  std::string description() const override;
  // Of memory of the device.
  uint64_t memory_bytes() const override { return index_->memory_bytes(); }

  absl::Status LowerBound(KeyBatch keys, absl::Span<Position> positions) const override;
  absl::Status UpperBound(KeyBatch keys, absl::Span<Position> positions) const override;
  absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const override;
  absl::Status Find(KeyBatch keys, Matches* matches) const override;
  absl::Status Contains(KeyBatch keys, absl::Span<bool> found) const override;
  absl::Status Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                         absl::Span<Position> end) const override;
  absl::Status Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const override;
  absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options,
                    Matches* matches) const override;

 private:
  // Has `search`, a method of DeviceIndex, answer the keys; a name for messages.
  template <typename Result>
  using PointSearch = absl::Status (DeviceIndex::*)(DeviceKeys, Result*, DeviceStream) const;
  template <typename Result>
  absl::Status Points(PointSearch<Result> search, KeyBatch keys, absl::Span<Result> results,
                      std::string_view name) const;
  // Positions of ranges that have been checked, and as many results.
  absl::Status CheckedPositions(const RangeBatch& ranges, absl::Span<Position> begin,
                                absl::Span<Position> end, QueryContext& context) const;

  const std::unique_ptr<const DeviceIndex> index_;
  const HostBatchPolicy policy_;
};

}  // namespace cairn::gpu
