// RangeAggregate/<function>/<column>/<key>/n:<log2 n>/<shape>: one aggregate, and the count, of
// each of 2^24 ranges, all in device memory (DeviceAggregates). queries_per_s counts ranges;
// functions are count, sum, avg, min and max. Shapes of ranges:
//   any_ends     from one random key to another;
//   any_length   2^(4 … 28) entries, the exponent uniform, from a random key on.
// ratio_to_limit is to two random reads of 64 bytes per range in memory of the aggregate's size.
// BuildAggregates/<column>/<key>/n:<log2 n>: sums and min values, from unsorted keys and a column
// in device memory; by the host's clock. Counts are checked for all ranges, values for 512.
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device/aggregates.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/gpu_limit.h"
#include "tools/bench/gpu/key_rule.cuh"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench::gpu_aggregates {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

constexpr size_t kRanges = size_t{1} << 24;
constexpr size_t kChecked = 512;
constexpr int kCheckThreads = 1024;

// The value of a row.
template <typename Value>
__device__ Value ValueOf(size_t row) {
  const uint64_t random = DrawRandom(77, row);
  if constexpr (std::is_floating_point_v<Value>) {
    return static_cast<Value>(random >> 32) - Value{1u << 31};
  } else {
    return static_cast<Value>(random);
  }
}
template <typename Value>
__global__ void FillColumn(Value* values, size_t size) {
  ForEachIndex(size, [=](size_t row) { values[row] = ValueOf<Value>(row); });
}

template <typename Key>
__global__ void DrawRanges(const Key* sorted, size_t size, bool any_ends, Key* lower, Key* upper,
                           size_t ranges) {
  ForEachIndex(ranges, [=](size_t i) {
    if (any_ends) {
      const Key a = static_cast<Key>(DrawRandom(1, i)), b = static_cast<Key>(DrawRandom(2, i));
      lower[i] = min(a, b);
      upper[i] = max(a, b);
    } else {
      const size_t at = Below(DrawRandom(1, i), size);
      const double exponent = 4 + 24 * (static_cast<double>(DrawRandom(2, i) >> 11) * 0x1p-53);
      lower[i] = sorted[at];
      upper[i] = sorted[min(size - 1, at + static_cast<size_t>(exp2(exponent)))];
    }
  });
}

template <typename Key>
__device__ size_t LowerBoundOf(const Key* keys, size_t size, Key key) {
  size_t begin = 0;
  while (begin < size) {
    const size_t middle = (begin + size) / 2;
    if (keys[middle] < key) {
      begin = middle + 1;
    } else {
      size = middle;
    }
  }
  return begin;
}

// One block per checked range: adds up its values, or finds the min and the max.
template <typename Key, typename Value>
__global__ void __launch_bounds__(kCheckThreads)
    CheckRanges(const Key* keys, const RowId* rows, size_t size, const Key* lower, const Key* upper,
                AggregateFunction function, const void* values, Wrong* wrong) {
  using Sum = std::conditional_t<std::is_floating_point_v<Value>, double, uint64_t>;
  __shared__ Sum sums[kCheckThreads];
  __shared__ Value least[kCheckThreads], greatest[kCheckThreads];
  const size_t i = blockIdx.x * (kRanges / kChecked);
  const size_t begin = LowerBoundOf(keys, size, lower[i]), end = LowerBoundOf(keys, size, upper[i]);
  Sum sum = 0;
  Value low = ValueOf<Value>(rows[min(begin, size - 1)]), high = low;
  for (size_t j = begin + threadIdx.x; j < end; j += kCheckThreads) {
    const Value value = ValueOf<Value>(rows[j]);
    sum += value;
    low = min(low, value);
    high = max(high, value);
  }
  sums[threadIdx.x] = sum;
  least[threadIdx.x] = low;
  greatest[threadIdx.x] = high;
  __syncthreads();
  if (threadIdx.x != 0 || begin >= end) return;
  for (int t = 1; t < kCheckThreads; ++t) {
    sum += sums[t];
    low = min(low, least[t]);
    high = max(high, greatest[t]);
  }
  bool right = true;
  if (function == AggregateFunction::kMin || function == AggregateFunction::kMax) {
    right =
        static_cast<const Value*>(values)[i] == (function == AggregateFunction::kMin ? low : high);
  } else if (function == AggregateFunction::kSum) {
    const Sum found = static_cast<const Sum*>(values)[i];
    if constexpr (std::is_floating_point_v<Value>) {
      right = fabs(found - sum) <= 1e-12 * 4294967296.0 * static_cast<double>(end - begin);
    } else {
      right = found == sum;  // fits 64 bits, since values have 32
    }
  } else if (function == AggregateFunction::kAvg) {
    const double mean = static_cast<double>(sum) / static_cast<double>(end - begin);
    right = fabs(static_cast<const double*>(values)[i] - mean) <= 1e-12 * 4294967296.0;
  }
  if (!right) wrong->Count(i);
}

// The last aggregates, by name.
template <typename Key, typename Value>
absl::StatusOr<std::shared_ptr<const DeviceAggregates>> GetAggregates(
    const EntrySet<Key>& entries, std::vector<DeviceAggregate> wanted, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto column, DeviceBuffer<Value>::Allocate(entries.size(), stream));
  FillColumn<<<SimpleBlocks(entries.size()), kSimpleThreads, 0, stream>>>(column.data(),
                                                                          entries.size());
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillColumn");
  const std::vector<DeviceColumn> columns = {{column.data(), entries.size()}};
  ASSIGN_OR_RETURN(auto made, MakeDeviceAggregates(DeviceKeys(entries.keys.data(), entries.size()),
                                                   nullptr, columns, wanted, stream));
  return std::shared_ptr<const DeviceAggregates>(std::move(made));
}

struct AggregateCase {
  AggregateFunction function;
  int log2_n;
  bool any_ends;
};

template <typename Key, typename Value>
absl::Status RangeAggregate(benchmark::State& state, cudaStream_t stream,
                            const AggregateCase& asked) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, asked.log2_n));
  const size_t size = entries->size();
  const DeviceAggregate aggregate = {asked.function, 0};
  ASSIGN_OR_RETURN(const auto made, (GetAggregates<Key, Value>(*entries, {aggregate}, stream)));
  const DeviceAggregates& aggregates = *made;
  ASSIGN_OR_RETURN(const auto lower, DeviceBuffer<Key>::Allocate(kRanges, stream));
  ASSIGN_OR_RETURN(const auto upper, DeviceBuffer<Key>::Allocate(kRanges, stream));
  ASSIGN_OR_RETURN(const auto counts, DeviceBuffer<uint64_t>::Allocate(kRanges, stream));
  ASSIGN_OR_RETURN(const auto values, DeviceBuffer<uint64_t>::Allocate(kRanges, stream));
  const Key* keys = entries->run.keys.data();
  DrawRanges<<<SimpleBlocks(kRanges), kSimpleThreads, 0, stream>>>(
      keys, size, asked.any_ends, lower.data(), upper.data(), kRanges);
  CAIRN_RETURN_IF_LAUNCH_FAILED("DrawRanges");
  const DeviceRanges ranges = {DeviceKeys(lower.data(), kRanges),
                               DeviceKeys(upper.data(), kRanges)};
  const bool counts_alone = asked.function == AggregateFunction::kCount;
  const DeviceAggregateResults results = {counts.data(), counts_alone ? nullptr : values.data()};
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream, [&] {
                     return aggregates.Execute(ranges, aggregate, results, stream);
                   }));
  ASSIGN_OR_RETURN(const double limit,
                   RandomReadSeconds(aggregates.memory_bytes(), 2 * kRanges, stream));
  Report(state, seconds,
         {.queries = kRanges,
          .bytes = aggregates.memory_bytes(),
          .entries = size,
          .limit_seconds = limit});
  const Key *low = lower.data(), *high = upper.data();
  const uint64_t* found = counts.data();
  RETURN_IF_ERROR(CheckEach(kRanges, stream, [=] __device__(size_t i) {
    const size_t begin = LowerBoundOf(keys, size, low[i]), end = LowerBoundOf(keys, size, high[i]);
    return found[i] != (begin < end ? end - begin : 0);
  }));
  return Check(kChecked, stream, [&](Wrong* wrong) {
    CheckRanges<Key, Value><<<kChecked, kCheckThreads, 0, stream>>>(
        keys, entries->run.row_ids.data(), size, low, high, asked.function, values.data(), wrong);
  });
}

template <typename Key, typename Value>
absl::Status BuildAggregatesOf(benchmark::State& state, cudaStream_t stream, int log2_n) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, log2_n));
  const std::vector<DeviceAggregate> wanted = {DeviceAggregate::Sum(0), DeviceAggregate::Min(0)};
  uint64_t bytes = 0;
  ASSIGN_OR_RETURN(const double seconds, MedianWallSeconds(stream, [&]() -> absl::Status {
                     ASSIGN_OR_RETURN(const auto made,
                                      (GetAggregates<Key, Value>(*entries, wanted, stream)));
                     bytes = made->memory_bytes();
                     return absl::OkStatus();
                   }));
  Report(state, seconds, {.rows = entries->size(), .bytes = bytes, .entries = entries->size()});
  return absl::OkStatus();
}

template <typename Key, typename Value>
void RegisterColumn(const char* column, int log2_n) {
  using enum AggregateFunction;
  const std::string of = absl::StrFormat("%s/u%d/n:%d", column, 8 * sizeof(Key), log2_n);
  for (const AggregateFunction function : {kCount, kSum, kAvg, kMin, kMax}) {
    for (const bool any_ends : {true, false}) {
      RegisterDeviceBenchmark(
          absl::StrFormat("RangeAggregate/%s/%s/%s", AggregateFunctionName(function), of,
                          any_ends ? "any_ends" : "any_length"),
          [=](benchmark::State& state, cudaStream_t stream) {
            return RangeAggregate<Key, Value>(state, stream, {function, log2_n, any_ends});
          });
    }
  }
  RegisterDeviceBenchmark("BuildAggregates/" + of,
                          [=](benchmark::State& state, cudaStream_t stream) {
                            return BuildAggregatesOf<Key, Value>(state, stream, log2_n);
                          });
}

const RegisterInMain registered([] {
  for (int log2_n : {20, 24, 28}) {
    RegisterColumn<uint32_t, uint32_t>("u32", log2_n);
    RegisterColumn<uint64_t, uint32_t>("u32", log2_n);
    RegisterColumn<uint32_t, double>("f64", log2_n);
    RegisterColumn<uint64_t, double>("f64", log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_aggregates
