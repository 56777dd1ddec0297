// RangeScan/<index>/<key>/n:<log2 n>/hits:<h>/ranges:<r>[/<variant>]: the row ids of r ranges of h
// entries each, from random keys on, all in device memory: positions, offsets (PlanScan) and rows
// (CopyRows). queries_per_s counts ranges, rows_per_s rows. Variants:
//   descending  rows in reverse;
//   plan, rows  only one of the two steps.
// <index> is a factory string, or one of three ways to copy the rows, after gpu:sorted_array has
// found the positions:
//   baseline:thread_per_range;
//   baseline:warp_per_range    four loads per lane in flight;
//   baseline:thread_then_warp  Henneberg and Schuhknecht (2025), section 5.7: each thread copies up
//                              to 32 rows of its range, then the warp copies the rest.
// ratio_to_limit is to cudaMemcpy of the same bytes of rows within device memory, in the same
// process.
#include <functional>
#include <string>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench::gpu_range_scan {
namespace {

using gpu::DeviceBuffer;

constexpr int kThreads = 256;
constexpr int kWarpLoads = 4;
constexpr uint64_t kSwitch = 32;  // rows, as in the paper

// The arguments of the baselines' kernels.
struct Rows {
  const RowId* row_ids;
  const Position* begin;
  const uint64_t* offsets;
  size_t ranges;
  RowId* out;
};

// The rows from `first` on of a range, by one warp.
__device__ void CopyByWarp(const RowId* from, RowId* to, uint64_t first, uint64_t count) {
  uint64_t i = first + threadIdx.x % 32;
  for (; i + 32 * (kWarpLoads - 1) < count; i += 32 * kWarpLoads) {
    RowId loaded[kWarpLoads];
#pragma unroll
    for (int k = 0; k < kWarpLoads; ++k) loaded[k] = from[i + 32 * k];
#pragma unroll
    for (int k = 0; k < kWarpLoads; ++k) to[i + 32 * k] = loaded[k];
  }
  for (; i < count; i += 32) to[i] = from[i];
}

__global__ void ThreadPerRange(Rows rows) {
  const size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= rows.ranges) return;
  RowId* out = rows.out + rows.offsets[i];
  const uint64_t count = rows.offsets[i + 1] - rows.offsets[i];
  for (uint64_t k = 0; k < count; ++k) out[k] = rows.row_ids[rows.begin[i] + k];
}

__global__ void WarpPerRange(Rows rows) {
  const size_t i = (size_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (i >= rows.ranges) return;
  CopyByWarp(rows.row_ids + rows.begin[i], rows.out + rows.offsets[i], 0,
             rows.offsets[i + 1] - rows.offsets[i]);
}

__global__ void ThreadThenWarp(Rows rows) {
  const size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x;
  uint64_t offset = 0, count = 0;
  Position begin = 0;
  if (i < rows.ranges) {
    offset = rows.offsets[i];
    count = rows.offsets[i + 1] - offset;
    begin = rows.begin[i];
  }
  for (uint64_t k = 0; k < min(count, kSwitch); ++k) {
    rows.out[offset + k] = rows.row_ids[begin + k];
  }
  for (unsigned left = __ballot_sync(0xffffffffu, count > kSwitch); left != 0; left &= left - 1) {
    const int lane = __ffs(static_cast<int>(left)) - 1;
    CopyByWarp(rows.row_ids + __shfl_sync(0xffffffffu, begin, lane),
               rows.out + __shfl_sync(0xffffffffu, offset, lane), kSwitch,
               __shfl_sync(0xffffffffu, count, lane));
  }
}

using RowKernel = void (*)(Rows);

// The kernel of a baseline, or null if the index itself copies.
RowKernel KernelOf(const std::string& name) {
  if (name == "baseline:thread_per_range") return ThreadPerRange;
  if (name == "baseline:warp_per_range") return WarpPerRange;
  if (name == "baseline:thread_then_warp") return ThreadThenWarp;
  return nullptr;
}

struct DeviceScan {
  std::string index;
  int log2_n;
  size_t hits;
  size_t ranges;
  std::string variant;
};

// Seconds that a copy of `rows` rows within device memory takes.
absl::StatusOr<double> CopySeconds(uint64_t rows, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto memory, DeviceBuffer<RowId>::Allocate(2 * rows, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(memory.data(), 0, memory.bytes(), stream));
  return MedianSeconds(stream, [&]() -> absl::Status {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(memory.data() + rows, memory.data(),
                                               rows * sizeof(RowId), cudaMemcpyDeviceToDevice,
                                               stream));
    return absl::OkStatus();
  });
}

// Memory for the result of a scan.
struct ScanOutput {
  DeviceBuffer<Position> begin;
  DeviceBuffer<uint64_t> offsets;
  DeviceBuffer<RowId> row_ids;
};

absl::StatusOr<ScanOutput> MakeOutput(size_t ranges, uint64_t rows, cudaStream_t stream) {
  ASSIGN_OR_RETURN(DeviceBuffer<Position> begin, DeviceBuffer<Position>::Allocate(ranges, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<uint64_t> offsets,
                   DeviceBuffer<uint64_t>::Allocate(ranges + 1, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> row_ids, DeviceBuffer<RowId>::Allocate(rows, stream));
  return ScanOutput{std::move(begin), std::move(offsets), std::move(row_ids)};
}

template <typename Key>
absl::Status RangeScan(benchmark::State& state, cudaStream_t stream, const DeviceScan& scan) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, scan.log2_n));
  const RowKernel kernel = KernelOf(scan.index);
  ASSIGN_OR_RETURN(const auto made,
                   GetIndex<Key>(kernel == nullptr ? scan.index : "gpu:sorted_array",
                                 KeySet::kUniform, scan.log2_n));
  const DeviceIndex& index = *made;
  ASSIGN_OR_RETURN(const auto ranges, MakeRanges(*entries, scan.ranges, scan.hits, stream));
  const uint64_t rows = scan.ranges * scan.hits;
  ASSIGN_OR_RETURN(const auto output, MakeOutput(scan.ranges, rows, stream));
  const Order order = scan.variant == "descending" ? Order::kDescending : Order::kAscending;

  const auto plan = [&] {
    return index.PlanScan(ranges.ranges(), UINT64_MAX, order, output.begin.data(),
                          output.offsets.data(), stream);
  };
  const auto copy = [&]() -> absl::Status {
    if (kernel == nullptr) {
      return index.CopyRows(output.begin.data(), output.offsets.data(), scan.ranges, rows, order,
                            output.row_ids.data(), stream);
    }
    const size_t threads = scan.ranges * (kernel == WarpPerRange ? 32 : 1);
    kernel<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
        {entries->run.row_ids.data(), output.begin.data(), output.offsets.data(), scan.ranges,
         output.row_ids.data()});
    CAIRN_RETURN_IF_LAUNCH_FAILED("the baseline's kernel");
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(plan());
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream, [&] {
                     absl::Status s = scan.variant == "rows" ? absl::OkStatus() : plan();
                     return s.ok() && scan.variant != "plan" ? copy() : s;
                   }));
  ASSIGN_OR_RETURN(const double limit, CopySeconds(rows, stream));
  Report(state, seconds,
         {.queries = scan.ranges,
          .rows = rows,
          .bytes = index.memory_bytes(),
          .entries = entries->size(),
          .limit_seconds = limit});
  if (order == Order::kDescending || scan.variant == "plan") return absl::OkStatus();
  return CheckMatches(*entries, ranges.lower.data(), ranges.upper.data(), scan.ranges,
                      output.offsets.data(), output.row_ids.data(), stream);
}

template <typename Key>
void Register(const DeviceScan& scan) {
  std::string name = absl::StrFormat("RangeScan/%s/u%d/n:%d/hits:%d/ranges:%d", scan.index,
                                     8 * sizeof(Key), scan.log2_n, scan.hits, scan.ranges);
  if (!scan.variant.empty()) absl::StrAppendFormat(&name, "/%s", scan.variant);
  RegisterDeviceBenchmark(name, [scan](benchmark::State& state, cudaStream_t stream) {
    return RangeScan<Key>(state, stream, scan);
  });
}

template <typename Key>
void RegisterSize(int log2_n) {
  constexpr size_t k64K = size_t{1} << 16, k4M = size_t{1} << 22;
  const struct {
    size_t hits, ranges;
  } shapes[] = {{1 << 6, k64K}, {1 << 14, k64K}, {1 << 6, k4M}, {1 << 2, k4M}, {1 << 10, k64K}};
  for (const auto& [hits, ranges] : shapes) {
    for (const char* index :
         {"gpu:auto", "gpu:packed,rows", "gpu:sorted_array", "gpu:sorted_array,aos", "gpu:pivot",
          "gpu:eytzinger", "gpu:btree", "gpu:fast", "baseline:thread_per_range",
          "baseline:warp_per_range", "baseline:thread_then_warp"}) {
      Register<Key>({index, log2_n, hits, ranges, ""});
    }
    // For comparison with gpu_eytzinger_scan.cu.
    for (const char* index : {"gpu:eytzinger,k=2,soa", "gpu:eytzinger,k=2,aos",
                              "gpu:eytzinger,k=9,aos", "gpu:eytzinger,k=17,soa"}) {
      Register<Key>({index, log2_n, hits, ranges, "rows"});
    }
    for (const char* variant : {"plan", "rows", "descending"}) {
      Register<Key>({"gpu:auto", log2_n, hits, ranges, variant});
      Register<Key>({"gpu:sorted_array", log2_n, hits, ranges, variant});
    }
  }
}

const RegisterInMain registered([] {
  for (int log2_n : {20, 24, 26, 28}) {
    RegisterSize<uint32_t>(log2_n);
    RegisterSize<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_range_scan
