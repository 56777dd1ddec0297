#include "gpu/group/wide_batch.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "gpu/group/query_partition.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

absl::Status CheckGroupKeys(PhysicalType group, DeviceKeys keys) {
  if (keys.empty() || keys.kind() == group) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("batch: got %s keys, but the device group has %s",
                      PhysicalTypeName(keys.kind()), PhysicalTypeName(group)));
}

absl::Status CheckWide(const Group& group, const WideDeviceBatch& batch) {
  if (group.kind() == PhysicalType::kBytes) {
    return absl::UnimplementedError(
        "device group: 64-bit results are not supported for byte-string keys; use On(device)");
  }
  if (batch.operation == Operation::kFind || batch.operation == Operation::kScan) {
    return absl::UnimplementedError(absl::StrFormat("device group: %s of a batch in device memory",
                                                    OperationName(batch.operation)));
  }
  if (!TakesRanges(batch.operation)) return CheckGroupKeys(group.kind(), batch.keys);
  const DeviceRanges& ranges = batch.ranges;
  if (ranges.lower.size() != ranges.upper.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("%d lower keys, but %d upper keys",
                                                      ranges.lower.size(), ranges.upper.size()));
  }
  if (ranges.lower_bound == Bound::kPrefix || ranges.upper_bound == Bound::kPrefix) {
    return absl::InvalidArgumentError(
        "Bound::kPrefix: expected as an upper bound of byte-string keys only");
  }
  RETURN_IF_ERROR(CheckGroupKeys(group.kind(), ranges.lower));
  return CheckGroupKeys(group.kind(), ranges.upper);
}

// Searches the two ends of ranges, one after the other.
class WideRangeEnds {
 public:
  WideRangeEnds(const Group& group, int device, cudaStream_t stream)
      : group_(group), device_(device), stream_(stream) {}

  absl::Status Lower(DeviceKeys keys, Bound bound, uint64_t* begin) const {
    return Find(keys, bound, Operation::kLowerBound, Operation::kUpperBound, 0, {begin, true});
  }
  absl::Status Upper(DeviceKeys keys, Bound bound, const AnswerColumn& to) const {
    return Find(keys, bound, Operation::kUpperBound, Operation::kLowerBound, group_.size(), to);
  }

 private:
  absl::Status Find(DeviceKeys keys, Bound bound, Operation inclusive, Operation exclusive,
                    uint64_t open, const AnswerColumn& to) const {
    if (bound != Bound::kOpen) {
      return group_.Execute({bound == Bound::kInclusive ? inclusive : exclusive, keys, to}, device_,
                            stream_);
    }
    RETURN_IF_ERROR(EnqueueConstant(open, keys.size(), to, stream_));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream_));
    return absl::OkStatus();
  }

  const Group& group_;
  const int device_;
  const cudaStream_t stream_;
};

absl::Status CountRanges(const Group& group, const WideRangeEnds& ends, const DeviceRanges& ranges,
                         uint64_t* counts, cudaStream_t stream) {
  constexpr size_t kMin = size_t{1} << 25;  // if chunks are smaller, several are in flight
  const size_t size = ranges.size();
  const size_t most = std::min(size, std::max(kMin, group.options().chunk_queries));
  ASSIGN_OR_RETURN(const DeviceBuffer<uint64_t> begin,
                   DeviceBuffer<uint64_t>::Allocate(most, stream));
  for (size_t first = 0; first < size; first += most) {
    const size_t count = std::min(most, size - first);
    // An open bound may have no keys.
    const DeviceKeys lower = SliceOf(ranges.lower, first, count);
    const DeviceKeys upper = SliceOf(ranges.upper, first, count);
    RETURN_IF_ERROR(ends.Lower(lower, ranges.lower_bound, begin.data()));
    RETURN_IF_ERROR(ends.Upper(upper, ranges.upper_bound,
                               {counts + first, true, Finish::kSubtract, begin.data()}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerWide(const Group& group, const WideDeviceBatch& batch, int device,
                        cudaStream_t stream) {
  RETURN_IF_ERROR(CheckWide(group, batch));
  if (batch.size() == 0) return absl::OkStatus();
  const OnDevice on_device(device);
  const WideRangeEnds ends(group, device, stream);
  const DeviceRanges& ranges = batch.ranges;
  switch (batch.operation) {
    case Operation::kContains:
      return group.Execute({batch.operation, batch.keys, {batch.found}}, device, stream);
    case Operation::kEqualRange:
      RETURN_IF_ERROR(ends.Lower(batch.keys, Bound::kInclusive, batch.values));
      return ends.Upper(batch.keys, Bound::kInclusive, {batch.ends, true});
    case Operation::kPositions:
      RETURN_IF_ERROR(ends.Lower(ranges.lower, ranges.lower_bound, batch.values));
      return ends.Upper(ranges.upper, ranges.upper_bound,
                        {batch.ends, true, Finish::kAtLeast, batch.values});
    case Operation::kCount:
      return CountRanges(group, ends, ranges, batch.values, stream);
    default:
      return group.Execute({batch.operation, batch.keys, {batch.values, true}}, device, stream);
  }
}

}  // namespace cairn::gpu
