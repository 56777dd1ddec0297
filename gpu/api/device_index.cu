#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
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

// Makes ranges with crossed ends empty.
__global__ void MendCrossed(const Position* begin, Position* end, size_t size) {
  ForEachIndex(size, [=](size_t i) { end[i] = max(begin[i], end[i]); });
}

__global__ void Subtract(const Position* begin, const Position* end, uint64_t* counts,
                         size_t size) {
  ForEachIndex(size, [=](size_t i) { counts[i] = end[i] - begin[i]; });
}

// counts[i] = the number of entries that range i returns, at most `limit`. For a descending scan,
// moves begin[i] so that the range has its last entries.
__global__ void LimitRanges(Position* begin, const Position* end, uint64_t* counts, size_t size,
                            uint64_t limit, bool descending) {
  ForEachIndex(size, [=](size_t i) {
    const uint64_t count = min(limit, uint64_t{end[i] - begin[i]});
    counts[i] = count;
    if (descending) begin[i] = end[i] - static_cast<Position>(count);
  });
}

// Keeps the row ids that are written before row_ids[capacity]: kept[i] = offsets[i], at most the
// capacity. A truncated descending range keeps its last entries.
__global__ void KeepRows(Position* begin, const uint64_t* offsets, uint64_t* kept, size_t size,
                         uint64_t capacity, bool descending) {
  ForEachIndex(size, [=](size_t i) {
    const uint64_t from = offsets[i], end = offsets[i + 1];
    const uint64_t kept_end = min(end, capacity);
    if (i == 0) kept[0] = 0;
    kept[i + 1] = kept_end;
    if (descending) begin[i] += static_cast<Position>(end - max(from, kept_end));
  });
}

// An element of a prefix scan: the number of rows so far in the upper half, and the last row id in
// the lower half. OneRow makes an element of one row id, and AddRows combines two elements.
struct OneRow {
  __device__ uint64_t operator()(RowId row_id) const {
    return (row_id != kNoRow ? uint64_t{1} << 32 : 0) | row_id;
  }
};
struct AddRows {
  __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return (a >> 32 << 32) + b; }
};
// Output of a scan of row ids: writes the running count to the query's offset, and each row id to
// its position.
struct RowPlaces {
  uint64_t* offsets;
  RowId* row_ids;
  uint64_t capacity;

  __device__ void operator()(ptrdiff_t i, uint64_t sum) const {
    const uint64_t count = sum >> 32;
    const RowId row_id = static_cast<RowId>(sum);
    offsets[i + 1] = count;
    if (row_id != kNoRow && count <= capacity) row_ids[count - 1] = row_id;
  }
};

absl::Status CheckKind(PhysicalType index, DeviceKeys keys) {
  if (keys.empty() || keys.kind() == index) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("batch: got %s keys, but the index has %s",
                                                    PhysicalTypeName(keys.kind()),
                                                    PhysicalTypeName(index)));
}

absl::Status CheckRanges(PhysicalType index, const DeviceRanges& ranges) {
  if (ranges.lower.size() != ranges.upper.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("%d lower keys, but %d upper keys",
                                                      ranges.lower.size(), ranges.upper.size()));
  }
  if (ranges.lower_bound == Bound::kPrefix ||
      (ranges.upper_bound == Bound::kPrefix && index != PhysicalType::kBytes)) {
    return absl::InvalidArgumentError(
        "Bound::kPrefix: expected as an upper bound of byte-string keys only");
  }
  RETURN_IF_ERROR(CheckKind(index, ranges.lower));
  return CheckKind(index, ranges.upper);
}

// Whether each range has the entries of exactly one key, which is both its lower and upper bound.
bool AreEqualRanges(const DeviceRanges& ranges) {
  return ranges.lower_bound == Bound::kInclusive && ranges.upper_bound == Bound::kInclusive &&
         ranges.lower.data() == ranges.upper.data() &&
         ranges.lower.offsets() == ranges.upper.offsets();
}

// The result of a call that reads the index, after recording the use, so that the index's memory is
// not freed too early.
absl::Status AfterUse(absl::Status status, int device, DeviceStream stream) {
  absl::Status noted = gpu::NoteUse(device, stream);
  return status.ok() ? noted : status;
}

}  // namespace

absl::Status DeviceIndex::FindEqualRanges(DeviceKeys keys, Position* begin, Position* end,
                                          DeviceStream stream) const {
  RETURN_IF_ERROR(Search(Operation::kLowerBound, keys, begin, stream));
  return Search(Operation::kUpperBound, keys, end, stream);
}

absl::Status DeviceIndex::FindPrefixEnds(DeviceKeys, Position*, DeviceStream) const {
  return absl::UnimplementedError("prefixes: expected byte-string keys");
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
  if (AreEqualRanges(ranges)) {
    return AfterUse(FindEqualRanges(ranges.lower, begin, end, stream), device_, stream);
  }
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

absl::Status DeviceIndex::Execute(const DeviceBatch& batch, DeviceStream stream) const {
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
      return AfterUse(FindEqualRanges(batch.keys, batch.values, batch.ends, stream), device_,
                      stream);
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
      "Find and Scan are not supported in device memory; use PlanScan and CopyRows");
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

absl::Status DeviceIndex::FindOnlyRows(DeviceKeys keys, uint64_t* offsets, RowId* row_ids,
                                       uint64_t capacity, DeviceStream stream) const {
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> found, DeviceBuffer<RowId>::Allocate(keys.size(), stream));
  RETURN_IF_ERROR(
      AfterUse(Search(Operation::kFindFirst, keys, found.data(), stream), device_, stream));
  return gpu::InclusiveScan(
      thrust::make_transform_iterator(found.data(), OneRow()),
      thrust::make_tabulate_output_iterator(RowPlaces{offsets, row_ids, capacity}), keys.size(),
      AddRows(), stream);
}

absl::Status DeviceIndex::Scan(const DeviceRanges& ranges, uint64_t limit, Order order,
                               uint64_t* offsets, RowId* row_ids, uint64_t capacity,
                               DeviceStream stream) const {
  RETURN_IF_ERROR(CheckRanges(kind_, ranges));
  const size_t size = ranges.size();
  const OnDevice on_device(device_);
  if (size > 0 && size <= kMaxEntries && limit > 0 && AreEqualRanges(ranges) &&
      has_distinct_keys()) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(offsets, 0, sizeof(uint64_t), stream));
    return FindOnlyRows(ranges.lower, offsets, row_ids, capacity, stream);
  }
  ASSIGN_OR_RETURN(DeviceBuffer<Position> begin, DeviceBuffer<Position>::Allocate(size, stream));
  RETURN_IF_ERROR(PlanScan(ranges, limit, order, begin.data(), offsets, stream));
  if (size == 0 || capacity == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(DeviceBuffer<uint64_t> kept, DeviceBuffer<uint64_t>::Allocate(size + 1, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("KeepRows", SimpleShape(size), stream, KeepRows, begin.data(),
                               offsets, kept.data(), size, capacity, order == Order::kDescending);
  // Limited to the possible number of rows, because it determines the size of what is enqueued.
  const uint64_t most = std::min(limit, uint64_t{size_});
  const uint64_t rows = most > capacity / size ? capacity : most * size;
  return CopyRows(begin.data(), kept.data(), size, rows, order, row_ids, stream);
}

}  // namespace cairn
