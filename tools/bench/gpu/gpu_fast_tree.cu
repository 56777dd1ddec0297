// Fast/<form>/<key>/n:<log2 n>/<policy>: Kim et al., FAST (SIGMOD 2010), section 5.2, on batches of
// 2^27 random hits answered with row ids. <form> is
//   paper              d_K = 4 as printed: 15 keys per block in breadth-first order, d_L = d_K,
//                      d_P = d_N, the tree over every key. 16 lanes per query find the child by the
//                      keys of the block's lowest level and their common ancestors.
//   lanes=<n>,page=<p> the library's lines of 64 bytes over lines of keys, by n lanes, in page
//                      blocks of 4 KB or 2 MB or in level order
// and <policy> as in gpu_lightweight.cu. Cairn's own structure is PointLookup/gpu:fast.
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "gpu/search/fast_build.cuh"
#include "gpu/search/fast_searcher.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/gpu_point_lookup.h"
#include "tools/bench/gpu/launch_check.h"
#include "tools/bench/gpu/searcher_bench.cuh"

namespace cairn::bench::gpu_fast_tree {
namespace {

using gpu::DeviceBuffer;
using gpu::DeviceRun;
using gpu::EntryLayout;
using gpu::SearchPolicy;

constexpr unsigned kAllLanes = 0xffffffffu;

// The paper's tree: blocks of 15 keys, level by level; each level is complete or absent.
struct PaperLayout {
  static constexpr uint32_t kBlockKeys = 15, kFanOut = 16;

  explicit PaperLayout(uint64_t entries) : size(entries) {
    for (uint64_t leaves = 1; leaves < entries; leaves *= kFanOut) ++levels;
  }
  PaperLayout() = default;

  static constexpr uint64_t BlocksBefore(int level) {
    return ((uint64_t{1} << (4 * level)) - 1) / kBlockKeys;
  }
  constexpr uint64_t keys() const { return BlocksBefore(levels) * kBlockKeys; }

  // The entry whose key is at place `i` of the tree: the last one to its left.
  constexpr uint64_t EntryAt(uint64_t i) const {
    const uint64_t block = i / kBlockKeys;
    int level = 0;
    while (BlocksBefore(level + 1) <= block) ++level;
    // In order, place `place` of a level of 2^depth is number (2 place + 1) * 8 / 2^depth.
    const uint32_t slot = static_cast<uint32_t>(i % kBlockKeys) + 1;
    const int depth = slot >= 8 ? 3 : slot >= 4 ? 2 : slot >= 2 ? 1 : 0;
    const uint32_t rank = (2 * (slot - (1u << depth)) + 1) << (3 - depth);
    const uint64_t child = (block - BlocksBefore(level)) * kFanOut + rank;
    return (child << (4 * (levels - 1 - level))) - 1;
  }

  uint64_t size = 0;
  int levels = 0;
};

template <typename Key>
__global__ void PutPaperKeys(const Key* keys, PaperLayout layout, Key* tree) {
  gpu::ForEachIndex(layout.keys(), [=](size_t i) {
    const uint64_t entry = layout.EntryAt(i);
    tree[i] = entry < layout.size ? keys[entry] : std::numeric_limits<Key>::max();
  });
}

// Figure 5, with shuffles instead of shared buffers.
template <typename Key>
struct PaperSearcher {
  using DataType = Key;
  using Slot = uint32_t;  // a position
  static constexpr int kLanes = 16;

  const Key* tree;
  gpu::EntryView<Key, EntryLayout::kSoA> entries;
  PaperLayout layout;

  void PinUpTo(size_t, gpu::Pinning) {}
  __host__ __device__ size_t pinned_bytes() const { return 0; }
  __device__ void Pin(void*) const {}

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                             const void*) const {
    const uint32_t lane = threadIdx.x % kLanes;
    // The common ancestor of each lane of 7 to 14, the block's lowest level, and the next lane;
    // lane 15 is never less.
    constexpr uint64_t kAncestors = 0xF625041300000000ull >> 4;
    const uint32_t ancestor = static_cast<uint32_t>(kAncestors >> (4 * lane)) & 15;
    uint64_t offsets[kQueries] = {};
    for (int level = 0; level < layout.levels; ++level) {
      Key keys[kQueries];
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        const uint64_t block = layout.BlocksBefore(level) + offsets[i];
        keys[i] = lane < 15 ? tree[block * PaperLayout::kBlockKeys + lane]
                            : std::numeric_limits<Key>::max();
      }
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        const uint32_t less = keys[i] < queries[i] ? 1 : 0;
        const uint32_t next = __shfl_down_sync(kAllLanes, less, 1, kLanes);
        const uint32_t child = 2 * lane - 13 + __shfl_sync(kAllLanes, less, ancestor, kLanes);
        const uint32_t found = __ballot_sync(kAllLanes, lane >= 7 && less == 1 && next == 0);
        const uint32_t mine = found >> (threadIdx.x % 32 / kLanes * kLanes) & 0xffff;
        const uint32_t at =
            __shfl_sync(kAllLanes, child, __ffs(static_cast<int>(mine)) - 1, kLanes);
        offsets[i] = offsets[i] * PaperLayout::kFanOut + (mine == 0 ? 0 : at);
      }
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      // A key above all ends past the entries: at the last one's place, or in the padding.
      uint64_t at = min(offsets[i], layout.size);
      if (at < layout.size && entries.key(at) < queries[i]) ++at;
      slots[i] = static_cast<uint32_t>(at);
    }
  }

  __device__ Position position(Slot slot) const {
    return slot;
  }
  __device__ bool Equals(Slot slot, Key key) const {
    return slot < layout.size && entries.key(slot) == key;
  }
  __device__ RowId row_id(Slot slot) const {
    return entries.row_id(slot);
  }
};

template <typename Key>
struct PaperScheme {
  using DataType = Key;
  static std::string Name() { return "paper"; }
  absl::Status Build(const DeviceRun<Key>& run, cudaStream_t stream) {
    layout = PaperLayout(run.size());
    view = {run.keys.data(), run.row_ids.data()};
    RETURN_IF_ERROR(gpu::Resize(&tree, layout.keys(), stream));
    PutPaperKeys<<<gpu::SimpleBlocks(layout.keys()), gpu::kSimpleThreads, 0, stream>>>(
        run.keys.data(), layout, tree.data());
    CAIRN_RETURN_IF_LAUNCH_FAILED("PutPaperKeys");
    return absl::OkStatus();
  }
  PaperSearcher<Key> Searcher() const { return {tree.data(), view, layout}; }
  uint64_t bytes() const { return tree.bytes(); }

  DeviceBuffer<Key> tree;
  gpu::EntryView<Key, EntryLayout::kSoA> view;
  PaperLayout layout;
};

template <typename Key, int kLanes, PageBlocking kPage>
struct LineScheme {
  using DataType = Key;
  static std::string Name() {
    return absl::StrFormat("lanes=%d,page=%d", kLanes, PageBytes(kPage));
  }
  absl::Status Build(const DeviceRun<Key>& run, cudaStream_t stream) {
    layout = TreeLayout<Key>(run.size(), kPage);
    view = {run.keys.data(), run.row_ids.data()};
    ASSIGN_OR_RETURN(lines, gpu::BuildFastNodes(run.keys.data(), layout, stream));
    return absl::OkStatus();
  }
  gpu::FastSearcher<Key, kLanes, kPage> Searcher() const { return {lines.data(), view, layout}; }
  uint64_t bytes() const { return lines.bytes(); }

  DeviceBuffer<Key> lines;
  gpu::EntryView<Key, EntryLayout::kSoA> view;
  TreeLayout<Key> layout;
};

template <typename Scheme>
void RegisterInFlight(int log2_n) {
  RegisterSearcher<Scheme, SearchPolicy<256, 1>>("Fast/", {log2_n});
  RegisterSearcher<Scheme, SearchPolicy<256, 2>>("Fast/", {log2_n});
  RegisterSearcher<Scheme, SearchPolicy<256, 4>>("Fast/", {log2_n});
}

template <typename Key>
void RegisterForms(int log2_n) {
  constexpr int kLaneAKey = 64 / sizeof(Key);
  RegisterInFlight<PaperScheme<Key>>(log2_n);
  RegisterInFlight<LineScheme<Key, kLaneAKey, PageBlocking::kNone>>(log2_n);
  RegisterInFlight<LineScheme<Key, 4, PageBlocking::kNone>>(log2_n);
  RegisterSearcher<LineScheme<Key, 4, PageBlocking::k4K>, SearchPolicy<256, 4>>("Fast/", {log2_n});
  RegisterSearcher<LineScheme<Key, 4, PageBlocking::k2M>, SearchPolicy<256, 4>>("Fast/", {log2_n});
  RegisterDeviceLookup<Key>({"gpu:fast", log2_n});
  RegisterDeviceLookup<Key>({"gpu:fast", log2_n, DeviceAnswer::kPosition});
}

const RegisterInMain registered([] {
  for (int log2_n : {16, 20, 24, 26, 28}) {
    RegisterForms<uint32_t>(log2_n);
    RegisterForms<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_fast_tree
