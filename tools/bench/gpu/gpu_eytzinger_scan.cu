// RangeScan/baseline:eytzinger_levels,k=<K>,<soa or aos>/u32/n:<log2 n>/hits:<h>/ranges:<r>: rows
// of ranges in Eytzinger order by one scan per level, as in section 3.2 of Henneberg and
// Schuhknecht, "Is Binary Search Really All You Need?" (2025). One warp scans each range (section
// 5.7: the number of threads is fixed). Each range goes down by its lower key. On every level it
// reads to the right until a key is beyond its upper key. Rows come out level by level, not in
// order of keys. Compare
//   RangeScan/gpu:eytzinger,…/rows   Cairn's way: each position's slot by a formula, in order
#include <thrust/equal.h>
#include <thrust/execution_policy.h>
#include <cub/device/device_segmented_sort.cuh>

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/search/eytzinger_build.cuh"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench::gpu_eytzinger_scan {
namespace {

using gpu::DeviceBuffer;
using gpu::EntryLayout;

constexpr int kThreads = 256;

template <typename Key>
struct Scan {
  const Key* lower;
  const Key* upper;
  const uint64_t* offsets;
  size_t ranges;
  RowId* out;
};

// Writes a level's rows from `slot` on, by one warp; returns the next row's slot.
template <typename View, typename Key>
__device__ RowId* ScanLevel(const View& entries, size_t slot, size_t end, Key upper, RowId* out) {
  const unsigned lane = threadIdx.x % 32;
  for (slot += lane;; slot += 32) {
    const bool in_range = slot < end && entries.key(slot) <= upper;
    const unsigned lanes = __ballot_sync(0xffffffffu, in_range);
    if (in_range) out[__popc(lanes & ((1u << lane) - 1))] = entries.row_id(slot);
    out += __popc(lanes);
    if (lanes != 0xffffffffu) return out;
  }
}

template <typename View, typename Key, int kFanOut>
__global__ void ScanLevels(View entries, EytzingerLayout<kFanOut> layout, Scan<Key> scan) {
  constexpr int kNodeKeys = kFanOut - 1;
  const size_t range = (size_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (range >= scan.ranges) return;
  const Key lower = scan.lower[range], upper = scan.upper[range];
  RowId* out = scan.out + scan.offsets[range];
  uint32_t node = 0, start = 0;
  const int levels = layout.levels() + (layout.leaf_entries() > 0 ? 1 : 0);
  for (int level = 0; level < levels; ++level) {
    const size_t first = start + size_t{node} * kNodeKeys;
    uint32_t less = 0;
    for (int i = static_cast<int>(threadIdx.x % 32);
         i - static_cast<int>(threadIdx.x % 32) < kNodeKeys; i += 32) {
      const bool below =
          i < kNodeKeys && first + i < layout.entries() && entries.key(first + i) < lower;
      less += __popc(__ballot_sync(0xffffffffu, below));
    }
    const size_t end = level < layout.levels() ? layout.Next(start) : layout.entries();
    out = ScanLevel(entries, first + less, end, upper, out);
    node = node * kFanOut + less;
    start = layout.Next(start);
  }
}

// Whether two arrays hold the same rows for every range, in any order.
absl::Status CheckSameRows(const RowId* a, const RowId* b, size_t rows, const uint64_t* offsets,
                           size_t ranges, cudaStream_t stream) {
  ASSIGN_OR_RETURN(auto sorted, DeviceBuffer<RowId>::Allocate(2 * rows, stream));
  size_t bytes = 0;
  const auto sort = [&](void* scratch, const RowId* from, RowId* to) {
    return cub::DeviceSegmentedSort::SortKeys(scratch, bytes, from, to, static_cast<int64_t>(rows),
                                              static_cast<int64_t>(ranges), offsets, offsets + 1,
                                              stream);
  };
  CAIRN_RETURN_IF_CUDA_FAILS(sort(nullptr, a, sorted.data()));
  ASSIGN_OR_RETURN(const auto scratch, DeviceBuffer<char>::Allocate(bytes, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(sort(scratch.data(), a, sorted.data()));
  CAIRN_RETURN_IF_CUDA_FAILS(sort(scratch.data(), b, sorted.data() + rows));
  if (!thrust::equal(thrust::cuda::par.on(stream), sorted.data(), sorted.data() + rows,
                     sorted.data() + rows)) {
    return absl::InternalError("wrong rows");
  }
  return absl::OkStatus();
}

struct Shape {
  int log2_n;
  size_t hits, ranges;
};

template <int kFanOut, EntryLayout kLayout>
absl::Status RangeScan(benchmark::State& state, cudaStream_t stream, const Shape& shape) {
  using Key = uint32_t;
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, shape.log2_n));
  const size_t n = entries->size(), rows = shape.hits * shape.ranges;
  ASSIGN_OR_RETURN(const auto index,
                   GetIndex<Key>("gpu:sorted_array", KeySet::kUniform, shape.log2_n));
  ASSIGN_OR_RETURN(const auto ranges, MakeRanges(*entries, shape.ranges, shape.hits, stream));
  ASSIGN_OR_RETURN(const auto begin, DeviceBuffer<Position>::Allocate(shape.ranges, stream));
  ASSIGN_OR_RETURN(const auto offsets, DeviceBuffer<uint64_t>::Allocate(shape.ranges + 1, stream));
  ASSIGN_OR_RETURN(const auto row_ids, DeviceBuffer<RowId>::Allocate(2 * rows, stream));
  RETURN_IF_ERROR(index->PlanScan(ranges.ranges(), UINT64_MAX, Order::kAscending, begin.data(),
                                  offsets.data(), stream));
  RETURN_IF_ERROR(index->CopyRows(begin.data(), offsets.data(), shape.ranges, rows,
                                  Order::kAscending, row_ids.data() + rows, stream));
  ASSIGN_OR_RETURN(const auto tree,
                   gpu::ArrangeEytzinger<Key, kFanOut>(entries->run, kLayout, stream));
  const auto view = gpu::EytzingerView<kFanOut, kLayout>(tree);
  const EytzingerLayout<kFanOut> layout(n);
  const Scan<Key> scan{ranges.lower.data(), ranges.upper.data(), offsets.data(), shape.ranges,
                       row_ids.data()};
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    ScanLevels<<<static_cast<unsigned>((shape.ranges * 32 + kThreads - 1) / kThreads), kThreads, 0,
                 stream>>>(view, layout, scan);
    CAIRN_RETURN_IF_LAUNCH_FAILED("ScanLevels");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds,
         {.queries = shape.ranges, .rows = rows, .bytes = tree.bytes(), .entries = n});
  return CheckSameRows(row_ids.data(), row_ids.data() + rows, rows, offsets.data(), shape.ranges,
                       stream);
}

template <int kFanOut, EntryLayout kLayout>
void Register(const Shape& shape) {
  const std::string name = absl::StrFormat(
      "RangeScan/baseline:eytzinger_levels,k=%d,%s/u32/n:%d/hits:%d/ranges:%d", kFanOut,
      kLayout == EntryLayout::kSoA ? "soa" : "aos", shape.log2_n, shape.hits, shape.ranges);
  RegisterDeviceBenchmark(name, [shape](benchmark::State& state, cudaStream_t stream) {
    return RangeScan<kFanOut, kLayout>(state, stream, shape);
  });
}

const RegisterInMain registered([] {
  for (int log2_n : {20, 24, 26, 28}) {
    for (size_t hits : {size_t{1} << 6, size_t{1} << 14}) {
      const Shape shape{log2_n, hits, size_t{1} << 16};
      Register<2, EntryLayout::kSoA>(shape);
      Register<2, EntryLayout::kAoS>(shape);
      Register<9, EntryLayout::kAoS>(shape);
      Register<17, EntryLayout::kSoA>(shape);
    }
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_eytzinger_scan
