#include "gpu/aggregates/group_summary.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <bit>
#include <utility>

#include "gpu/aggregates/segment_scan.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

template <typename Value>
__global__ void CombineLeaves(const Value* values, const Position* first, size_t leaves,
                              size_t padded, Value* combined) {
  ForEachIndex(padded, [=](size_t leaf) {
    Value all = Nothing<Value>();
    if (leaf < leaves) {
      for (Position i = first[leaf]; i < first[leaf + 1]; ++i) all = Combine(all, values[i]);
    }
    combined[leaf] = all;
  });
}

// One block per group, one thread per leaf.
template <typename Value>
__global__ void __launch_bounds__(kGroupLeaves)
    CombineGroups(const Value* leaves, Value* before, Value* behind, Value* lines, Value* groups) {
  __shared__ Value up[kGroupLeaves], down[kGroupLeaves];
  const unsigned at = threadIdx.x;
  const size_t leaf = size_t{blockIdx.x} * kGroupLeaves + at;
  up[at] = down[at] = leaves[leaf];
  for (unsigned apart = 1; apart < kGroupLeaves; apart *= 2) {
    __syncthreads();
    const Value low = at >= apart ? up[at - apart] : Nothing<Value>();
    const Value high = at + apart < kGroupLeaves ? down[at + apart] : Nothing<Value>();
    __syncthreads();
    up[at] = Combine(low, up[at]);
    down[at] = Combine(down[at], high);
  }
  __syncthreads();
  before[leaf] = at > 0 ? up[at - 1] : Nothing<Value>();
  behind[leaf] = at + 1 < kGroupLeaves ? down[at + 1] : Nothing<Value>();
  if (at == 0) groups[blockIdx.x] = down[0];
  if (at % kLineLeaves != 0) return;
  Value line = Nothing<Value>();
  for (unsigned i = 0; i < kLineLeaves; ++i) line = Combine(line, leaves[leaf + i]);
  lines[leaf / kLineLeaves] = line;
}

// The groups of a level's halves in the order in which they are combined: from the middle downward
// in the first half, upward in the second half.
struct OrderOfHalves {
  int level;
  __host__ __device__ size_t operator()(size_t i) const {
    const size_t half = i >> level, in_half = i & ((size_t{1} << level) - 1);
    return half % 2 == 0 ? (half << level) + ((size_t{1} << level) - 1 - in_half) : i;
  }
};
template <typename Value>
struct GroupSegment {
  const Value* groups;
  size_t size;
  OrderOfHalves order;
  __device__ Segments<Value> operator()(size_t i) const {
    const size_t group = order(i);
    const bool begins = (i & ((size_t{1} << order.level) - 1)) == 0;
    return {group < size ? groups[group] : Nothing<Value>(), begins ? 1u : 0u};
  }
};
template <typename Value>
struct LevelWriter {
  Value* level;
  size_t size;
  OrderOfHalves order;
  __device__ void operator()(ptrdiff_t i, const Segments<Value>& up_to) const {
    const size_t group = order(static_cast<size_t>(i));
    if (group < size) level[group] = up_to.value;
  }
};

}  // namespace

template <typename Value>
absl::StatusOr<GroupSummary<Value>> SummariseGroups(const Value* values, const Position* first,
                                                    size_t leaves, GroupOutside<Value>* outside,
                                                    cudaStream_t stream) {
  GroupSummary<Value> summary;
  summary.groups = static_cast<uint32_t>((leaves + kGroupLeaves - 1) / kGroupLeaves);
  const size_t groups = summary.groups, padded = groups * kGroupLeaves;
  const int levels = groups == 1 ? 1 : std::bit_width(groups - 1);
  RETURN_IF_ERROR(Resize(&summary.leaves, padded, stream));
  RETURN_IF_ERROR(Resize(&summary.lines, padded / kLineLeaves, stream));
  RETURN_IF_ERROR(Resize(&summary.table, groups * static_cast<size_t>(levels), stream));
  RETURN_IF_ERROR(Resize(&outside->before, padded, stream));
  RETURN_IF_ERROR(Resize(&outside->behind, padded, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("CombineLeaves", SimpleShape(padded), stream, CombineLeaves<Value>,
                               values, first, leaves, padded, summary.leaves.data());
  CAIRN_RETURN_IF_LAUNCH_FAILS("CombineGroups",
                               LaunchShape{summary.groups, static_cast<int>(kGroupLeaves)}, stream,
                               CombineGroups<Value>, summary.leaves.data(), outside->before.data(),
                               outside->behind.data(), summary.lines.data(), summary.table.data());
  for (int level = 1; level < levels; ++level) {
    const OrderOfHalves order = {level};
    const size_t half = size_t{1} << level, items = (groups + half - 1) / half * half;
    const auto input =
        thrust::make_transform_iterator(thrust::make_counting_iterator(size_t{0}),
                                        GroupSegment<Value>{summary.table.data(), groups, order});
    const auto output = thrust::make_tabulate_output_iterator(LevelWriter<Value>{
        summary.table.data() + groups * static_cast<size_t>(level), groups, order});
    RETURN_IF_ERROR(InclusiveScan(input, output, items, JoinSegments<Value>(), stream));
  }
  return summary;
}

#define CAIRN_INSTANTIATE(Value)                                \
  template absl::StatusOr<GroupSummary<Value>> SummariseGroups( \
      const Value*, const Position*, size_t, GroupOutside<Value>*, cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
CAIRN_INSTANTIATE(double);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
