#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <bit>

#include "gpu/packed/leaf_start.cuh"
#include "gpu/packed/rank_bitmap.cuh"
#include "gpu/run/key_groups.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "index/layout/wide_key.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

template <typename Key>
constexpr int KeyBits() {
  return static_cast<int>(sizeof(Key)) * 8;
}

// The shape of a bitmap before it has nodes.
template <typename Key>
struct RegionPlan {
  const Key* keys;
  size_t size;
  Key base, limit;
  int region_shift;
  uint32_t regions;
  int bits;
  double load;

  // The number of keys before region `region`.
  __device__ size_t KeysBefore(uint32_t region) const {
    if (region > (limit >> region_shift)) return size;
    const Key key = base + (Key{region} << region_shift);
    size_t least = 0, most = size;
    while (least < most) {
      const size_t middle = (least + most) / 2;
      if (keys[middle] < key) {
        least = middle + 1;
      } else {
        most = middle;
      }
    }
    return least;
  }
};

// Computes the shift of each region and the nodes that its cells need.
template <typename Key>
__global__ void PlanRegions(RegionPlan<Key> plan, uint8_t* shifts, uint64_t* nodes) {
  ForEachIndex(plan.regions, [=](size_t i) {
    const auto region = static_cast<uint32_t>(i);
    const size_t first = plan.KeysBefore(region), end = plan.KeysBefore(region + 1);
    int shift = plan.region_shift;
    // A region without keys is one cell: no leaf begins in its middle.
    if (first != end) {
      const double span = 1 + static_cast<double>(plan.keys[end - 1] - plan.keys[first]);
      const double keys = static_cast<double>(end - first);
      // The greatest shift at which an average of `load` keys of the span share a cell.
      if (keys > 1) shift = min(shift, max(0, ilogb(plan.load * span / keys)));
      // Leaves begin with blocks, so cells must, too.
      shift = min(shift, plan.bits);
    }
    // More than 2^40 cells are too many in any case.
    const uint64_t cells = uint64_t{1} << min(plan.region_shift - shift, 40);
    shifts[i] = static_cast<uint8_t>(shift);
    nodes[i] = (cells + RankNode::kCells - 1) / RankNode::kCells;
  });
}

template <typename Key>
__global__ void WriteRegions(const uint8_t* shifts, const uint64_t* nodes_up_to, size_t count,
                             uint32_t* regions) {
  ForEachIndex(count, [=](size_t i) {
    const uint64_t first = i == 0 ? 0 : nodes_up_to[i - 1];
    regions[i] = RankBitmapView<Key>::Region(static_cast<uint32_t>(first), shifts[i]);
  });
}

// One bit per key: whether a cell begins with it, and whether a block does.
template <typename Key>
__global__ void MarkStarts(RankBitmapView<Key> view, const Key* keys, size_t size, int bits,
                           uint32_t* cells, uint32_t* blocks) {
  constexpr int kGroup = kKeyGroup<Key>;
  ForEachKeyGroup(keys, size, [=](size_t first, const auto& group, int count) {
    uint32_t cell_bits = 0, block_bits = 0;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if (j >= count) continue;
      const Key offset = group[1 + j] - view.base, before = group[j] - view.base;
      const int shift = static_cast<int>(view.regions[offset >> view.region_shift] >>
                                         RankBitmapView<Key>::kNodeBits);
      const bool block = first + j == 0 || BlockOf(offset, bits) != BlockOf(before, bits);
      const bool cell = block || (offset >> shift) != (before >> shift);
      cell_bits |= (cell ? 1u : 0u) << j;
      block_bits |= (block ? 1u : 0u) << j;
    }
    // The lanes whose keys share a word combine it.
    constexpr int kLanes = 32 / kGroup;
    const int at = static_cast<int>(threadIdx.x) % kLanes * kGroup;
    cell_bits <<= at;
    block_bits <<= at;
#pragma unroll
    for (int step = 1; step < kLanes; step *= 2) {
      cell_bits |= __shfl_xor_sync(0xffffffffu, cell_bits, step);
      block_bits |= __shfl_xor_sync(0xffffffffu, block_bits, step);
    }
    if (at == 0 && count != 0) {
      cells[first / 32] = cell_bits;
      blocks[first / 32] = block_bits;
    }
  });
}

template <typename Key>
__global__ void SetLeafBits(RankBitmapView<Key> view, const Key* keys, size_t size,
                            const Position* first, size_t primary, int bits, size_t from,
                            RankNode* nodes) {
  ForEachIndex(primary - from, [=](size_t i) {
    const size_t leaf = from + i;
    // If leaf 0 has keys, it begins with the first cell.
    const Key start = leaf == 0 ? view.base : FindLeafStart(keys, size, first, leaf, bits).greatest;
    const Key offset = start - view.base;
    if (offset > view.limit) return;  // the leaf after all keys
    const RankCell cell = CellOf(view, view.regions, offset);
    atomicOr(&nodes[cell.node].bits[cell.word], uint32_t{1} << cell.bit);
  });
}

struct LeavesOfNode {
  const RankNode* nodes;
  __device__ uint32_t operator()(size_t i) const {
    const RankNode node = nodes[i];
    return __popc(node.bits[0]) + __popc(node.bits[1]) + __popc(node.bits[2]);
  }
};

__global__ void WriteRanks(const uint32_t* up_to, size_t size, uint32_t first_leaf,
                           RankNode* nodes) {
  ForEachIndex(size, [=](size_t i) { nodes[i].rank = first_leaf + (i == 0 ? 0 : up_to[i - 1]); });
}

}  // namespace

template <typename Key>
absl::StatusOr<RankBitmap<Key>> RankBitmap<Key>::Plan(const Key* keys, size_t size,
                                                      const KeySurvey<Key>& survey, int bits,
                                                      double load, size_t max_nodes,
                                                      cudaStream_t stream) {
  using View = RankBitmapView<Key>;
  RankBitmap bitmap;
  bitmap.bits_ = bits;
  // From the beginning of the least key's block to the end of the greatest key's block.
  const Key in_block = bits == KeyBits<Key>() ? Key{0} : static_cast<Key>((Key{1} << bits) - 1);
  bitmap.base_ = survey.least & static_cast<Key>(~in_block);
  bitmap.limit_ = static_cast<Key>((survey.greatest | in_block) - bitmap.base_);
  const uint32_t regions =
      std::clamp(static_cast<uint32_t>(std::bit_ceil(size / View::kKeysOfRegion)),
                 View::kMinRegions, View::kMaxRegions);
  while ((bitmap.limit_ >> bitmap.region_shift_) >= regions) ++bitmap.region_shift_;

  const RegionPlan<Key> plan = {keys,    size, bitmap.base_, bitmap.limit_, bitmap.region_shift_,
                                regions, bits, load};
  DeviceBuffer<uint8_t> shifts;
  DeviceBuffer<uint64_t> nodes;
  RETURN_IF_ERROR(Resize(&shifts, regions, stream));
  RETURN_IF_ERROR(Resize(&nodes, regions, stream));
  constexpr int kThreads = 64;  // each thread has little work and waits for memory
  static_assert(View::kMinRegions % kThreads == 0);
  CAIRN_RETURN_IF_LAUNCH_FAILS("PlanRegions", LaunchShape{regions / kThreads, kThreads}, stream,
                               PlanRegions<Key>, plan, shifts.data(), nodes.data());
  RETURN_IF_ERROR(
      InclusiveScan(nodes.data(), nodes.data(), regions, ::cuda::std::plus<uint64_t>(), stream));
  ASSIGN_OR_RETURN(const uint64_t total, ReadBack(nodes.data() + regions - 1, stream));
  if (total > std::min(max_nodes, size_t{1} << View::kNodeBits)) return bitmap;
  RETURN_IF_ERROR(Resize(&bitmap.regions_, regions, stream));
  RETURN_IF_ERROR(Resize(&bitmap.nodes_, total, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteRegions", SimpleShape(regions), stream, WriteRegions<Key>,
                               shifts.data(), nodes.data(), size_t{regions},
                               bitmap.regions_.data());
  return bitmap;
}

template <typename Key>
absl::StatusOr<KeyMarks> RankBitmap<Key>::Mark(const Key* keys, size_t size,
                                               cudaStream_t stream) const {
  ASSIGN_OR_RETURN(KeyMarks marks, AllocateMarks(size, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("MarkStarts", SimpleShape(size), stream, MarkStarts<Key>, view(),
                               keys, size, bits_, marks.cells.data(), marks.blocks.data());
  return marks;
}

template <typename Key>
absl::Status RankBitmap<Key>::SetLeaves(const Key* keys, size_t size, const LeafCut& cut,
                                        cudaStream_t stream) {
  last_leaf_ = static_cast<uint32_t>(cut.primary - 1);
  // Leaf 0 is for keys before the base, if such keys are possible and leaves distinguish blocks.
  const bool before = base_ != 0 && bits_ != KeyBits<Key>();
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(nodes_.data(), 0, nodes_.bytes(), stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("SetLeafBits", SimpleShape(cut.primary), stream, SetLeafBits<Key>,
                               view(), keys, size, cut.first.data(), cut.primary, bits_,
                               size_t{before ? 1u : 0u}, nodes_.data());
  DeviceBuffer<uint32_t> up_to;
  RETURN_IF_ERROR(Resize(&up_to, nodes_.size(), stream));
  const auto counts = thrust::make_transform_iterator(thrust::make_counting_iterator(size_t{0}),
                                                      LeavesOfNode{nodes_.data()});
  RETURN_IF_ERROR(
      InclusiveScan(counts, up_to.data(), nodes_.size(), ::cuda::std::plus<uint32_t>(), stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteRanks", SimpleShape(nodes_.size()), stream, WriteRanks,
                               up_to.data(), nodes_.size(), before ? 1 : 0, nodes_.data());
  return absl::OkStatus();
}

template <typename Key>
RankBitmapView<Key> RankBitmap<Key>::view() const {
  return {base_,
          limit_,
          region_shift_,
          last_leaf_,
          static_cast<uint32_t>(regions_.size()),
          regions_.data(),
          nodes_.data()};
}

template class RankBitmap<uint32_t>;
template class RankBitmap<uint64_t>;
template class RankBitmap<WideKey>;

}  // namespace cairn::gpu
