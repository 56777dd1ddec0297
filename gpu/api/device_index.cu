#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::OnDevice;
using gpu::SimpleShape;

__global__ void Fill(Position* positions, size_t size, Position value) {
  ForEachIndex(size, [=](size_t i) { positions[i] = value; });
}

// Ranges whose ends have crossed are empty.
__global__ void MendCrossed(const Position* begin, Position* end, size_t size) {
  ForEachIndex(size, [=](size_t i) { end[i] = max(begin[i], end[i]); });
}

__global__ void Subtract(const Position* begin, const Position* end, uint64_t* counts,
                         size_t size) {
  ForEachIndex(size, [=](size_t i) { counts[i] = end[i] - begin[i]; });
}

// counts[i] = what range i gives, at most `limit`; a descending scan begins at its last entries.
__global__ void LimitRanges(Position* begin, const Position* end, uint64_t* counts, size_t size,
                            uint64_t limit, bool descending) {
  ForEachIndex(size, [=](size_t i) {
    const uint64_t count = min(limit, uint64_t{end[i] - begin[i]});
    counts[i] = count;
    if (descending) begin[i] = end[i] - static_cast<Position>(count);
  });
}

absl::Status CheckKind(KeyKind index, DeviceKeys keys) {
  if (keys.empty() || keys.kind() == index) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("the batch holds %s keys, the index %s",
                                                    KeyKindName(keys.kind()), KeyKindName(index)));
}

absl::Status CheckRanges(KeyKind index, const DeviceRanges& ranges) {
  if (ranges.lower.size() != ranges.upper.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("%d lower keys, but %d upper keys",
                                                      ranges.lower.size(), ranges.upper.size()));
  }
  if (ranges.lower_bound == Bound::kPrefix ||
      (ranges.upper_bound == Bound::kPrefix && index != KeyKind::kBytes)) {
    return absl::InvalidArgumentError("a prefix is an upper bound for keys of bytes");
  }
  RETURN_IF_ERROR(CheckKind(index, ranges.lower));
  return CheckKind(index, ranges.upper);
}

// What a call that reads the index gives, once whoever frees the index's memory knows of it.
absl::Status AfterUse(absl::Status status, int device, DeviceStream stream) {
  absl::Status noted = gpu::NoteUse(device, stream);
  return status.ok() ? noted : status;
}

}  // namespace

absl::Status DeviceIndex::FindPrefixEnds(DeviceKeys, Position*, DeviceStream) const {
  return absl::UnimplementedError("prefixes are of keys of bytes");
}

absl::Status DeviceIndex::FindPositions(const DeviceRanges& ranges, Position* begin, Position* end,
                                        DeviceStream stream) const {
  const auto search = [&](DeviceKeys keys, Bound bound, Operation inclusive, Operation exclusive,
                          Position open, Position* positions) -> absl::Status {
    if (bound != Bound::kOpen) {
      return Search(bound == Bound::kInclusive ? inclusive : exclusive, keys, positions, stream);
    }
    CAIRN_RETURN_IF_LAUNCH_FAILS("Fill", SimpleShape(keys.size()), stream, Fill, positions,
                                 keys.size(), open);
    return absl::OkStatus();
  };
  absl::Status s = search(ranges.lower, ranges.lower_bound, Operation::kLowerBound,
                          Operation::kUpperBound, 0, begin);
  if (s.ok() && ranges.upper_bound == Bound::kPrefix) {
    s = FindPrefixEnds(ranges.lower, end, stream);
  } else if (s.ok()) {
    s = search(ranges.upper, ranges.upper_bound, Operation::kUpperBound, Operation::kLowerBound,
               static_cast<Position>(size_), end);
  }
  if (s = AfterUse(std::move(s), device_, stream); !s.ok()) return s;
  CAIRN_RETURN_IF_LAUNCH_FAILS("MendCrossed", SimpleShape(ranges.size()), stream, MendCrossed,
                               begin, end, ranges.size());
  return absl::OkStatus();
}

absl::Status DeviceIndex::Answer(const DeviceBatch& batch, DeviceStream stream) const {
  const bool takes_ranges = TakesRanges(batch.operation);
  absl::Status s = takes_ranges ? CheckRanges(kind_, batch.ranges) : CheckKind(kind_, batch.keys);
  if (!s.ok() || batch.size() == 0) return s;
  const OnDevice on_device(device_);
  switch (batch.operation) {
    case Operation::kFindFirst:
    case Operation::kLowerBound:
    case Operation::kUpperBound:
      return AfterUse(Search(batch.operation, batch.keys, batch.values, stream), device_, stream);
    case Operation::kContains:
      return AfterUse(Search(batch.operation, batch.keys, batch.found, stream), device_, stream);
    case Operation::kEqualRange:
      s = Search(Operation::kLowerBound, batch.keys, batch.values, stream);
      if (s.ok()) s = Search(Operation::kUpperBound, batch.keys, batch.ends, stream);
      return AfterUse(std::move(s), device_, stream);
    case Operation::kPositions:
      return FindPositions(batch.ranges, batch.values, batch.ends, stream);
    case Operation::kCount: {
      const size_t size = batch.size();
      ASSIGN_OR_RETURN(DeviceBuffer<Position> ends,
                       DeviceBuffer<Position>::Allocate(2 * size, stream));
      Position *begin = ends.data(), *end = begin + size;
      s = FindPositions(batch.ranges, begin, end, stream);
      if (!s.ok()) return s;
      CAIRN_RETURN_IF_LAUNCH_FAILS("Subtract", SimpleShape(size), stream, Subtract, begin, end,
                                   batch.counts, size);
      return absl::OkStatus();
    }
    case Operation::kFind:
    case Operation::kScan:
      break;
  }
  return absl::InvalidArgumentError(
      "on a device rows are found in two steps, by PlanScan and CopyRows");
}

absl::Status DeviceIndex::PlanScan(const DeviceRanges& ranges, uint64_t limit, Order order,
                                   Position* begin, uint64_t* offsets, DeviceStream stream) const {
  RETURN_IF_ERROR(CheckRanges(kind_, ranges));
  const OnDevice on_device(device_);
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(offsets, 0, sizeof(uint64_t), stream));
  const size_t size = ranges.size();
  if (size == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(DeviceBuffer<Position> end, DeviceBuffer<Position>::Allocate(size, stream));
  RETURN_IF_ERROR(FindPositions(ranges, begin, end.data(), stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("LimitRanges", SimpleShape(size), stream, LimitRanges, begin,
                               end.data(), offsets + 1, size, limit, order == Order::kDescending);
  return gpu::InclusiveScan(offsets + 1, offsets + 1, size, ::cuda::std::plus<uint64_t>(), stream);
}

absl::Status DeviceIndex::CopyRows(const Position* begin, const uint64_t* offsets, size_t queries,
                                   uint64_t rows, Order order, RowId* row_ids,
                                   DeviceStream stream) const {
  if (rows == 0) return absl::OkStatus();
  const OnDevice on_device(device_);
  return AfterUse(GatherRows(begin, offsets, queries, rows, order, row_ids, stream), device_,
                  stream);
}

}  // namespace cairn
