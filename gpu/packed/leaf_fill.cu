#include <cstddef>
#include <cstdint>

#include "gpu/packed/leaf_packing.h"
#include "gpu/packed/leaf_start.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Leaves that a block fills, and the maximum number of their keys kept in shared memory.
constexpr int kFillThreads = 128;
constexpr size_t kStaged = kFillThreads * LeafLayout<16>::kEntries;

template <typename Key>
struct LeafSource {
  const Key* keys;
  const Position* first_entry;  // null: key i is entry i
  const RowId* row_ids;

  __device__ RowId row_id(size_t i) const {
    return row_ids[first_entry == nullptr ? i : first_entry[i]];
  }
};

__device__ inline void StoreLeaf(const uint32_t (&words)[16], Leaf* leaf) {
  uint4* out = reinterpret_cast<uint4*>(leaf);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[i] = make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
  }
}

// Fills a leaf with as many of the keys [first, end) as fit; key(i) and row(i) are those of key
// first + i.
template <int kBits, typename GetKey, typename GetRow>
__device__ void FillLeaf(size_t first, size_t end, RowId link, GetKey key, GetRow row, Leaf* leaf) {
  constexpr int kEntries = static_cast<int>(LeafLayout<kBits>::kEntries);
  LeafWords<kBits> words(static_cast<Position>(first));
  const size_t size = end - first;
#pragma unroll
  for (int i = 0; i < kEntries; ++i) {
    if (static_cast<size_t>(i) < size) {
      words.SetKey(i, key(i));
      words.SetRow(i, row(i));
    }
  }
  const bool is_like_linked = size == kEntries && LowBits(key(kEntries - 1), kBits) == 0;
  if (size > kEntries || is_like_linked) {
    words.SetKey(kEntries - 1, 0);
    words.SetRow(kEntries - 1, link);
  }
  StoreLeaf(words.words, leaf);
}

// Fills the primary leaves. FillLinkedLeaves sets the links between leaves.
template <int kBits, typename Key>
__global__ void __launch_bounds__(kFillThreads)
    FillPrimaryLeaves(LeafSource<Key> source, const Position* first, size_t primary, Leaf* leaves) {
  __shared__ Key staged_keys[kStaged];
  __shared__ RowId staged_rows[kStaged];
  const size_t begin = size_t{blockIdx.x} * kFillThreads;
  const size_t end = min(begin + kFillThreads, primary);
  const size_t first_key = first[begin], end_key = first[end];
  // With chains, there may be too many keys to stage.
  const bool staged = end_key - first_key <= kStaged;
  if (staged) {
    for (size_t i = first_key + threadIdx.x; i < end_key; i += kFillThreads) {
      staged_keys[i - first_key] = source.keys[i];
      staged_rows[i - first_key] = source.row_id(i);
    }
    __syncthreads();
  }
  const size_t leaf = begin + threadIdx.x;
  if (leaf >= end) return;
  const size_t from = first[leaf], to = first[leaf + 1];
  if (staged) {
    const size_t offset = from - first_key;
    FillLeaf<kBits>(
        from, to, kNoRow, [&](int i) { return staged_keys[offset + i]; },
        [&](int i) { return staged_rows[offset + i]; }, leaves + leaf);
  } else {
    FillLeaf<kBits>(
        from, to, kNoRow, [&](int i) { return source.keys[from + i]; },
        [&](int i) { return source.row_id(from + i); }, leaves + leaf);
  }
}

template <int kBits, typename Key>
__global__ void FillLinkedLeaves(LeafSource<Key> source, const LinkedLeaf* linked, size_t count,
                                 size_t primary, Leaf* leaves) {
  using Layout = LeafLayout<kBits>;
  ForEachIndex(count, [=](size_t i) {
    const LinkedLeaf leaf = linked[i];
    const RowId number = static_cast<RowId>(primary + i);
    FillLeaf<kBits>(
        leaf.first, leaf.end, number + 1, [&](int k) { return source.keys[leaf.first + k]; },
        [&](int k) { return source.row_id(leaf.first + k); }, leaves + number);
    if (leaf.from < primary) {
      reinterpret_cast<uint32_t*>(
          leaves + leaf.from)[Layout::kRowsOffset / 4 + Layout::kEntries - 1] = number;
    }
  });
}

template <int kBits, typename Key>
absl::Status FillLeavesOf(const DistinctKeys<Key>& keys, const LeafCut& cut, Leaf* leaves,
                          cudaStream_t stream) {
  const LeafSource<Key> source = {
      keys.keys.data(), keys.repeats() ? keys.first_entry.data() : nullptr, keys.row_ids.data()};
  const size_t blocks = (cut.primary + kFillThreads - 1) / kFillThreads;
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "FillPrimaryLeaves", LaunchShape{static_cast<unsigned>(blocks), kFillThreads}, stream,
      FillPrimaryLeaves<kBits, Key>, source, cut.first.data(), cut.primary, leaves);
  if (cut.linked.size() == 0) return absl::OkStatus();
  CAIRN_RETURN_IF_LAUNCH_FAILS("FillLinkedLeaves", SimpleShape(cut.linked.size()), stream,
                               FillLinkedLeaves<kBits, Key>, source, cut.linked.data(),
                               cut.linked.size(), cut.primary, leaves);
  return absl::OkStatus();
}

}  // namespace

template <typename Key>
absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<Key>& keys, const LeafCut& cut,
                                              cudaStream_t stream) {
  DeviceBuffer<Leaf> leaves;
  RETURN_IF_ERROR(Resize(&leaves, cut.leaves(), stream));
  absl::Status filled;
  if constexpr (sizeof(Key) == 16) {
    filled = cut.bits == 64 ? FillLeavesOf<64>(keys, cut, leaves.data(), stream)
                            : FillLeavesOf<128>(keys, cut, leaves.data(), stream);
  } else if (cut.bits == 16) {
    filled = FillLeavesOf<16>(keys, cut, leaves.data(), stream);
  } else if (cut.bits == 32) {
    filled = FillLeavesOf<32>(keys, cut, leaves.data(), stream);
  } else if constexpr (sizeof(Key) == 8) {
    filled = cut.bits == 48 ? FillLeavesOf<48>(keys, cut, leaves.data(), stream)
                            : FillLeavesOf<64>(keys, cut, leaves.data(), stream);
  }
  if (!filled.ok()) return filled;
  return leaves;
}

template absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<uint32_t>&,
                                                       const LeafCut&, cudaStream_t);
template absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<uint64_t>&,
                                                       const LeafCut&, cudaStream_t);
template absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<WideKey>&, const LeafCut&,
                                                       cudaStream_t);

}  // namespace cairn::gpu
