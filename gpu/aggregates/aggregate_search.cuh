#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "gpu/aggregates/aggregate_output.cuh"
#include "gpu/aggregates/aggregate_search.h"
#include "gpu/aggregates/group_summary.h"
#include "gpu/aggregates/segment_scan.cuh"
#include "gpu/layout/aggregate_leaf.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

// One kernel answers ranges under any directory (packed_search.cuh says what that is). A lane has a
// range. It asks the directory for the leaves of either end; then the warp copies all 64 leaves to
// shared memory, four lanes a leaf, without a register in between, so that all of them are in
// flight together; then each lane reads its own two.

namespace cairn::gpu {

inline constexpr int kAggregateThreads = 128;

// Leaves of a warp in shared memory. Quarters of a line are swapped, so that eight lanes that each
// read the same quarter of a leaf of their own use all banks.
class StagedLeaves {
 public:
  static constexpr int kWarpLeaves = 64;

  // By the warp; `leaves` are the lane's, of either side.
  __device__ static void Copy(uint4* staged, const Leaf* from, const uint32_t (&leaves)[2],
                              int lane) {
    const int part = lane % 4;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
#pragma unroll
      for (int first = 0; first < 32; first += 8) {
        const int at = first + lane / 4;
        const uint32_t leaf = __shfl_sync(0xffffffffu, leaves[side], at);
        const auto to =
            static_cast<uint32_t>(__cvta_generic_to_shared(staged + Place(32 * side + at, part)));
        const uint4* const line = reinterpret_cast<const uint4*>(from + leaf) + part;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(line) : "memory");
      }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
  }
  template <typename AnyLeaf>
  __device__ static AnyLeaf Read(const uint4* staged, int at) {
    AnyLeaf leaf;
#pragma unroll
    for (int part = 0; part < 4; ++part) SetPart(staged[Place(at, part)], part, &leaf);
    return leaf;
  }
  template <typename AnyLeaf>
  __device__ static AnyLeaf ReadGlobal(const Leaf* from) {
    AnyLeaf leaf;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      SetPart(__ldg(reinterpret_cast<const uint4*>(from) + part), part, &leaf);
    }
    return leaf;
  }

 private:
  __device__ static int Place(int at, int part) {
    return 4 * at + (part ^ (at >> 1 & 3));
  }
  template <typename AnyLeaf>
  __device__ static void SetPart(const uint4& words, int part, AnyLeaf* leaf) {
    leaf->words[4 * part] = words.x;
    leaf->words[4 * part + 1] = words.y;
    leaf->words[4 * part + 2] = words.z;
    leaf->words[4 * part + 3] = words.w;
  }
};

// An end of a range: all entries before it are those whose keys are less, or all there are.
template <typename Key>
struct RangeEnd {
  Key key;
  bool past_all;
};
template <typename Key>
__device__ inline RangeEnd<Key> EndOf(const Key* keys, size_t i, Key add, bool past_all) {
  constexpr Key kGreatest = static_cast<Key>(~Key{0});
  if (keys == nullptr) return {past_all ? kGreatest : Key{0}, past_all};
  const Key key = __ldcs(keys + i);
  const bool beyond = add != 0 && key == kGreatest;
  return {beyond ? kGreatest : static_cast<Key>(key + add), beyond};
}

// Where an end is.
template <typename Sum>
struct FoundEnd {
  Position position;  // among distinct keys
  Sum sum;            // of all before it
};
template <typename AnyLeaf, bool kSums, typename Key>
__device__ FoundEnd<typename AnyLeaf::Sum> FindEnd(AnyLeaf leaf, const AggregateView& view,
                                                   const RangeEnd<Key>& end) {
  while (true) {
    const uint32_t link = leaf.link();
    int before = leaf.CountLess(end.key);
    if (end.past_all) {
      before =
          link != 0
              ? AnyLeaf::kEntries - 1
              : static_cast<int>(min(Position{AnyLeaf::kEntries}, view.distinct - leaf.position()));
    }
    if (link == 0 || before < AnyLeaf::kEntries - 1) {
      FoundEnd<typename AnyLeaf::Sum> found = {leaf.position() + before, 0};
      if constexpr (kSums) found.sum = leaf.SumBefore(before);
      return found;
    }
    leaf = StagedLeaves::ReadGlobal<AnyLeaf>(view.leaves + link);
  }
}

// The values at positions [begin, end) in a leaf and those that it is linked to.
template <typename AnyLeaf>
__device__ typename AnyLeaf::Value CombineInChain(AnyLeaf leaf, const Leaf* leaves, Position begin,
                                                  Position end) {
  using Value = typename AnyLeaf::Value;
  Value all = Nothing<Value>();
  while (true) {
#pragma unroll
    for (int slot = 0; slot < AnyLeaf::kEntries; ++slot) {
      const Position position = leaf.position() + slot;
      const bool inside = position >= begin && position < end;
      all = Combine(all, inside ? leaf.value(slot) : Nothing<Value>());
    }
    if (leaf.link() == 0) return all;
    leaf = StagedLeaves::ReadGlobal<AnyLeaf>(leaves + leaf.link());
  }
}

// Those of [begin, end) of a line of sixteen values.
template <typename Value>
__device__ Value CombineLine(const Value* values, uint32_t line, uint32_t begin, uint32_t end) {
  constexpr int kOfPart = 16 / sizeof(Value);
  Value all = Nothing<Value>();
#pragma unroll
  for (int part = 0; part < static_cast<int>(kLineLeaves) / kOfPart; ++part) {
    const uint32_t first = line * kLineLeaves + part * kOfPart;
    if (first + kOfPart <= begin || first >= end) continue;
    union {
      uint4 words;
      Value values[kOfPart];
    } read;
    read.words = __ldg(reinterpret_cast<const uint4*>(values + first));
#pragma unroll
    for (int i = 0; i < kOfPart; ++i) {
      if (first + i >= begin && first + i < end) all = Combine(all, read.values[i]);
    }
  }
  return all;
}

// What the leaves strictly between two come to, whose neighbours in their groups come to `behind`
// the first and `before` the last.
template <typename Value>
__device__ Value CombineBetween(const AggregateView& view, uint32_t first, uint32_t last,
                                Value behind, Value before) {
  const uint32_t a = first / kGroupLeaves + 1, b = last / kGroupLeaves;
  if (a <= b) {
    Value all = Combine(behind, before);
    if (a == b) return all;
    const auto* table = static_cast<const Value*>(view.group_table);
    const uint32_t z = b - 1;
    if (a == z) return Combine(all, __ldg(table + a));
    table += size_t{31u - __clz(static_cast<int>(a ^ z))} * view.groups;
    return Combine(all, Combine(__ldg(table + a), __ldg(table + z)));
  }
  // One group.
  const uint32_t begin = first + 1;
  if (begin >= last) return Nothing<Value>();
  const auto* leaves = static_cast<const Value*>(view.group_leaves);
  const uint32_t first_line = begin / kLineLeaves, last_line = (last - 1) / kLineLeaves;
  Value all = CombineLine(leaves, first_line, begin, last);
  if (first_line == last_line) return all;
  all = Combine(all, CombineLine(leaves, last_line, begin, last));
  if (first_line + 1 == last_line) return all;
  return Combine(all, CombineLine(static_cast<const Value*>(view.group_lines),
                                  (first_line + 1) / kLineLeaves, first_line + 1, last_line));
}

template <AggregateKind kKind, int kKeyBytes, typename Key, typename Directory>
__global__ void __launch_bounds__(kAggregateThreads)
    AggregateKernel(AggregateView view, Directory directory, RangeEnds<Key> ranges,
                    AggregateOutput output) {
  using AnyLeaf = AggregateLeaf<kKind, kKeyBytes>;
  __shared__ uint4 staged[kAggregateThreads / 32][StagedLeaves::kWarpLeaves * 4];
  uint4* const lines = staged[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const size_t i = size_t{blockIdx.x} * kAggregateThreads + threadIdx.x;
  const bool there = i < ranges.size;
  RangeEnd<Key> ends[2] = {};
  if (there) {
    ends[0] = EndOf(ranges.lower, i, ranges.lower_add, false);
    ends[1] = EndOf(ranges.upper, i, ranges.upper_add, true);
  }
  const Key keys[2] = {ends[0].key, ends[1].key};
  uint32_t leaves[2];
  directory.FindLeaves(keys, leaves, nullptr);
  StagedLeaves::Copy(lines, view.leaves, leaves, lane);
  if (!there) return;

  const AnyLeaf first = StagedLeaves::Read<AnyLeaf>(lines, lane);
  const auto begin = FindEnd<AnyLeaf, HasSums(kKind)>(first, view, ends[0]);
  const AnyLeaf last = StagedLeaves::Read<AnyLeaf>(lines, 32 + lane);
  const auto end = FindEnd<AnyLeaf, HasSums(kKind)>(last, view, ends[1]);
  const AggregateWriter writer = {output, i};
  const bool is_empty = begin.position >= end.position;
  uint64_t count = is_empty ? 0 : end.position - begin.position;
  if (output.function == AggregateFunction::kCountDistinct) {
    writer.Put(count, DeviceResult::kValue);
    if (output.results.counts == nullptr) return;
  }
  WideKey sum = 0;
  if constexpr (HasSums(kKind)) {
    sum = end.sum - begin.sum;
  } else if (!is_empty && view.records != nullptr) {
    const uint4* const records = reinterpret_cast<const uint4*>(view.records);
    const uint4 from = __ldg(records + begin.position), to = __ldg(records + end.position);
    const auto sum_of = [](const uint4& record) {
      return WideKey{record.z} << 64 | uint64_t{record.y} << 32 | record.x;
    };
    sum = sum_of(to) - sum_of(from);
    count = to.w - from.w;
  } else if (!is_empty && view.first_entry != nullptr) {
    count = __ldg(view.first_entry + end.position) - __ldg(view.first_entry + begin.position);
  }
  writer.Count(count);
  if (output.function == AggregateFunction::kCount ||
      output.function == AggregateFunction::kCountDistinct) {
    return;
  }
  if (is_empty) {
    writer.PutNull();
    return;
  }
  if constexpr (HasGroups(kKind)) {
    using Value = typename AnyLeaf::Value;
    Value all = CombineInChain(first, view.leaves, begin.position, end.position);
    if (leaves[0] != leaves[1]) {
      all = Combine(all, CombineBetween(view, leaves[0], leaves[1], first.behind(), last.before()));
      all = Combine(all, CombineInChain(last, view.leaves, begin.position, end.position));
    }
    if constexpr (kKind == AggregateKind::kFloatSums) {
      writer.PutFloatSum(all, count);
    } else {
      writer.PutExtreme(all);
    }
  } else {
    writer.PutSum(sum, count);
  }
}

template <AggregateKind kKind, typename Key, typename Directory>
absl::Status LaunchAggregate(const AggregateView& view, const Directory& directory,
                             const RangeEnds<Key>& ranges, const AggregateOutput& output,
                             cudaStream_t stream) {
  constexpr int kAll = static_cast<int>(sizeof(Key)), kHalf = kAll / 2;
  const auto blocks =
      static_cast<unsigned>((ranges.size + kAggregateThreads - 1) / kAggregateThreads);
  const auto kernel = view.bits == 8 * kAll ? AggregateKernel<kKind, kAll, Key, Directory>
                                            : AggregateKernel<kKind, kHalf, Key, Directory>;
  CAIRN_RETURN_IF_LAUNCH_FAILS("AggregateKernel", LaunchShape{blocks, kAggregateThreads}, stream,
                               kernel, view, directory, ranges, output);
  return absl::OkStatus();
}

template <typename Key, typename Directory>
absl::Status AggregateUnder(const AggregateView& view, const Directory& directory,
                            const RangeEnds<Key>& ranges, const AggregateOutput& output,
                            cudaStream_t stream) {
  const auto launch = [&](auto kind) {
    return LaunchAggregate<decltype(kind)::value>(view, directory, ranges, output, stream);
  };
  using enum AggregateKind;
  switch (view.kind) {
    case kCounts:
      return launch(std::integral_constant<AggregateKind, kCounts>());
    case kSums32:
      return launch(std::integral_constant<AggregateKind, kSums32>());
    case kSums64:
      return launch(std::integral_constant<AggregateKind, kSums64>());
    case kExtremes32:
      return launch(std::integral_constant<AggregateKind, kExtremes32>());
    case kExtremes64:
      return launch(std::integral_constant<AggregateKind, kExtremes64>());
    case kFloatSums:
      return launch(std::integral_constant<AggregateKind, kFloatSums>());
  }
  return absl::InternalError("no such kind of aggregate");
}

}  // namespace cairn::gpu
