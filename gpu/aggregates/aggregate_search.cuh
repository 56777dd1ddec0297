#pragma once

#include <cuda_runtime.h>

#include <algorithm>
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
#include "gpu/runtime/shared_memory.h"
#include "index/machine/status_macros.h"

// One kernel executes ranges under any directory (packed_search.cuh describes directories). Each
// lane has one range. It finds the leaves of both ends in the directory. Then the warp copies all
// 64 leaves to shared memory, four lanes per leaf, without using registers, so that all copies are
// in flight together. During the copy, values between the leaves are read. Finally each lane reads
// its own leaves.

namespace cairn::gpu {

// A block of up to kLargeAggregateBlock threads fills a multiprocessor, with the directory's top in
// shared memory in addition to the leaves; for large batches. Other batches use small blocks, which
// are spread over the device.
inline constexpr int kLargeAggregateBlock = 1024, kMinLargeBlock = 256;
inline constexpr int kSmallAggregateBlock = 128;
inline constexpr size_t kLargeAggregateBatch = size_t{1} << 18;

// The leaves of a warp in shared memory. Quarters of a line are permuted, so that eight lanes that
// read the same quarter of their own leaves use all banks.
class StagedLeaves {
 public:
  static constexpr size_t kWarpLines = 64 * 4;  // lines of 16 bytes

  // Starts the copy. Called by the warp; `leaves` are the lane's two leaves.
  __device__ static void Copy(uint4* staged, const Leaf* from, const uint32_t (&leaves)[2],
                              int lane) {
    const int part = lane % 4;
    // Unlike the directory, leaves are read only once.
    uint64_t once;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
#pragma unroll
    for (int side = 0; side < 2; ++side) {
#pragma unroll
      for (int first = 0; first < 32; first += 8) {
        const int at = first + lane / 4;
        const uint32_t leaf = __shfl_sync(0xffffffffu, leaves[side], at);
        const auto to =
            static_cast<uint32_t>(__cvta_generic_to_shared(staged + Place(32 * side + at, part)));
        const uint4* const line = reinterpret_cast<const uint4*>(from + leaf) + part;
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to),
                     "l"(line), "l"(once)
                     : "memory");
      }
    }
  }
  __device__ static void Wait() {
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

// An end of a range: all entries before it have lesser keys, or it is past all entries.
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

// The location of an end.
template <typename Sum>
struct FoundEnd {
  Position position;  // among the distinct keys
  Sum sum;            // of all values before it
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

// Combines the values at positions [begin, end) in a leaf and its linked leaves.
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

// Combines the values of [begin, end) in a line of sixteen values.
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

// Combines the leaves between two leaves: whole groups, or leaves of the group that contains both.
template <typename Value>
__device__ Value CombineBetween(const AggregateView& view, uint32_t first, uint32_t last) {
  const uint32_t a = first / kGroupLeaves + 1, end = last / kGroupLeaves;
  if (a < end) {
    const auto* table = static_cast<const Value*>(view.group_table);
    const uint32_t z = end - 1;
    if (a == z) return __ldg(table + a);
    table += size_t{31u - __clz(static_cast<int>(a ^ z))} * view.groups;
    return Combine(__ldg(table + a), __ldg(table + z));
  }
  const uint32_t begin = first + 1;
  if (a == end || begin >= last) return Nothing<Value>();
  const auto* leaves = static_cast<const Value*>(view.group_leaves);
  const uint32_t first_line = begin / kLineLeaves, last_line = (last - 1) / kLineLeaves;
  Value all = CombineLine(leaves, first_line, begin, last);
  if (first_line == last_line) return all;
  all = Combine(all, CombineLine(leaves, last_line, begin, last));
  if (first_line + 1 == last_line) return all;
  return Combine(all, CombineLine(static_cast<const Value*>(view.group_lines),
                                  (first_line + 1) / kLineLeaves, first_line + 1, last_line));
}

// Executes a lane's range, whose leaves are staged; `between` is their CombineBetween.
template <AggregateKind kKind, int kKeyBytes, typename Key>
__device__ void AnswerRange(const AggregateView& view, const uint4* lines, int lane,
                            const RangeEnd<Key> (&ends)[2], const uint32_t (&leaves)[2],
                            AggregateValue<kKind> between, const AggregateWriter& writer) {
  using AnyLeaf = AggregateLeaf<kKind, kKeyBytes>;
  const AggregateFunction function = writer.output.function;
  const auto begin =
      FindEnd<AnyLeaf, HasSums(kKind)>(StagedLeaves::Read<AnyLeaf>(lines, lane), view, ends[0]);
  const auto end = FindEnd<AnyLeaf, HasSums(kKind)>(StagedLeaves::Read<AnyLeaf>(lines, 32 + lane),
                                                    view, ends[1]);
  const bool is_empty = begin.position >= end.position;
  uint64_t count = is_empty ? 0 : end.position - begin.position;
  if (function == AggregateFunction::kCountDistinct) writer.Put(count, DeviceResult::kValue);
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
  if (function == AggregateFunction::kCount || function == AggregateFunction::kCountDistinct) {
    return;
  }
  if (is_empty) {
    writer.PutNull();
    return;
  }
  if constexpr (HasGroups(kKind)) {
    const AnyLeaf first = StagedLeaves::Read<AnyLeaf>(lines, lane);
    auto all = CombineInChain(first, view.leaves, begin.position, end.position);
    if (leaves[0] != leaves[1]) {
      const AnyLeaf last = StagedLeaves::Read<AnyLeaf>(lines, 32 + lane);
      all = Combine(all, between);
      if (leaves[0] / kGroupLeaves != leaves[1] / kGroupLeaves) {
        all = Combine(all, Combine(first.behind(), last.before()));
      }
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

// A lane's range and the leaves of its ends.
template <typename Key>
struct LaneRange {
  RangeEnd<Key> ends[2];
  uint32_t leaves[2];

  // Called by the warp; lanes past the last range get an arbitrary one.
  template <typename Directory>
  __device__ LaneRange(const RangeEnds<Key>& ranges, size_t i, const Directory& directory,
                       const void* top)
      : ends{} {
    if (i < ranges.size) {
      ends[0] = EndOf(ranges.lower, i, ranges.lower_add, false);
      ends[1] = EndOf(ranges.upper, i, ranges.upper_add, true);
    }
    const Key keys[2] = {ends[0].key, ends[1].key};
    if (top != nullptr) {
      directory.template FindLeaves<true>(keys, leaves, top);
    } else {
      directory.template FindLeaves<false>(keys, leaves, nullptr);
    }
  }
};

// `staged_bytes` is the directory's part of shared memory, 0 if it is not staged; leaves follow.
template <AggregateKind kKind, int kKeyBytes, typename Key, typename Directory>
__global__ void __launch_bounds__(kLargeAggregateBlock)
    AggregateKernel(AggregateView view, Directory directory, uint32_t staged_bytes,
                    RangeEnds<Key> ranges, AggregateOutput output) {
  extern __shared__ uint4 aggregate_shared[];
  void* const top = staged_bytes == 0 ? nullptr : aggregate_shared;
  if (top != nullptr) {
    directory.Load(top);
    __syncthreads();
  }
  const int lane = static_cast<int>(threadIdx.x % 32);
  uint4* const lines =
      aggregate_shared + staged_bytes / sizeof(uint4) + threadIdx.x / 32 * StagedLeaves::kWarpLines;
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i - lane >= ranges.size) return;
  LaneRange<Key> range(ranges, i, directory, top);
  while (true) {
    StagedLeaves::Copy(lines, view.leaves, range.leaves, lane);
    AggregateValue<kKind> between{};
    if constexpr (HasGroups(kKind)) {
      between = CombineBetween<AggregateValue<kKind>>(view, range.leaves[0], range.leaves[1]);
    }
    // While these leaves are copied, those of the next ranges are located.
    const bool more = i - lane + stride < ranges.size;
    LaneRange<Key> next = range;
    if (more) next = LaneRange<Key>(ranges, i + stride, directory, top);
    StagedLeaves::Wait();
    if (i < ranges.size) {
      AnswerRange<kKind, kKeyBytes>(view, lines, lane, range.ends, range.leaves, between,
                                    AggregateWriter{output, i});
    }
    if (!more) return;
    __syncwarp();
    range = next;
    i += stride;
  }
}

template <AggregateKind kKind, int kKeyBytes, typename Key, typename Directory>
absl::Status LaunchAggregate(const AggregateView& view, const Directory& directory,
                             const RangeEnds<Key>& ranges, const AggregateOutput& output,
                             cudaStream_t stream) {
  const auto kernel = AggregateKernel<kKind, kKeyBytes, Key, Directory>;
  const auto leaf_bytes = [](int threads) {
    return static_cast<size_t>(threads) / 32 * StagedLeaves::kWarpLines * sizeof(uint4);
  };
  const size_t top_bytes =
      (directory.shared_bytes() + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4);
  int large_block = 0;
  if (ranges.size >= kLargeAggregateBatch) {
    ASSIGN_OR_RETURN(const size_t max_shared, MostSharedBytes());
    const size_t room = max_shared > top_bytes ? max_shared - top_bytes : 0;
    large_block =
        static_cast<int>(std::min(size_t{kLargeAggregateBlock}, room / leaf_bytes(32) * 32));
  }
  const bool large = large_block >= kMinLargeBlock;
  LaunchShape shape = {
      static_cast<unsigned>((ranges.size + kSmallAggregateBlock - 1) / kSmallAggregateBlock),
      kSmallAggregateBlock, leaf_bytes(kSmallAggregateBlock)};
  if (large) {
    const size_t large_bytes = top_bytes + leaf_bytes(large_block);
    static SharedMemoryOfKernel shared_memory;
    RETURN_IF_ERROR(shared_memory.AllowMost(reinterpret_cast<const void*>(kernel)));
    static ResidentBlocks resident_blocks;  // each size of shared memory belongs to one block size
    ASSIGN_OR_RETURN(
        const unsigned blocks,
        resident_blocks.Count(reinterpret_cast<const void*>(kernel), large_block, large_bytes));
    shape = {blocks, large_block, large_bytes};
  }
  CAIRN_RETURN_IF_LAUNCH_FAILS("AggregateKernel", shape, stream, kernel, view, directory,
                               large ? static_cast<uint32_t>(top_bytes) : 0u, ranges, output);
  return absl::OkStatus();
}

template <typename Key, typename Directory>
absl::Status AggregateUnder(const AggregateView& view, const Directory& directory,
                            const RangeEnds<Key>& ranges, const AggregateOutput& output,
                            cudaStream_t stream) {
  constexpr int kAll = static_cast<int>(sizeof(Key)), kHalf = kAll / 2;
  const auto launch = [&](auto kind) {
    constexpr AggregateKind kKind = decltype(kind)::value;
    return view.bits == 8 * kAll
               ? LaunchAggregate<kKind, kAll>(view, directory, ranges, output, stream)
               : LaunchAggregate<kKind, kHalf>(view, directory, ranges, output, stream);
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
  return absl::InternalError("SearchAggregates: unknown kind of aggregate");
}

}  // namespace cairn::gpu
