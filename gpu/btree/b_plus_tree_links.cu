#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/btree/b_plus_tree_pages.cuh"
#include "gpu/btree/b_plus_tree_pages.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Computes children, sizes and separators' row ids of packed inner pages.
template <typename Key>
__global__ void LinkInnerPages(const __grid_constant__ PackedPages<Key> pages, RowId* inner_rows,
                               uint32_t* children, uint32_t* inner_sizes) {
  const BPlusTreeLayout& layout = pages.layout;
  const BPlusTreeLevel& leaves = layout.level(0);
  ForEachIndex(size_t{layout.inner_pages()} << pages.order_bits, [&](size_t i) {
    const auto number = static_cast<uint32_t>(i >> pages.order_bits);
    const uint32_t slot = static_cast<uint32_t>(i) & (pages.order() - 1);
    const int level = layout.level_of(number);
    const uint32_t page = number - layout.first_page(level);
    const uint32_t separators = layout.separators(level, page);
    const uint32_t first_child = layout.first_page(level - 1) + pages.Child(level, page, 0);
    uint32_t* const page_children = children + size_t{number} * (pages.order() + 1);
    if (slot == 0) {
      inner_sizes[number] = separators;
      page_children[0] = first_child;
    }
    inner_rows[i] = kNoRow;
    if (slot >= separators) return;
    page_children[slot + 1] = first_child + slot + 1;
    const uint32_t entry = layout.SeparatorEntry(level, page, slot);
    const uint32_t leaf = leaves.page_of(entry);
    inner_rows[i] = pages.Rows(leaf)[entry - leaves.first(leaf)];
  });
}

// Sets ordinal_at for the leaf with positions [first, first + size).
__device__ void SetOrdinalAt(uint32_t* ordinal_at, int order_bits, uint32_t ordinal, uint32_t first,
                             uint32_t size) {
  const uint64_t order = uint64_t{1} << order_bits;
  for (uint64_t at = (first + order - 1) >> order_bits; at << order_bits < uint64_t{first} + size;
       ++at) {
    ordinal_at[at] = ordinal;
  }
}

template <typename Key>
__global__ void LinkLeaves(const __grid_constant__ PackedPages<Key> pages, uint32_t* leaf_sizes,
                           uint32_t* next_leaf, Position* first_positions, uint32_t* leaf_at,
                           uint32_t* ordinal_at) {
  ForEachIndex(pages.leaf_count(), [&](size_t i) {
    const auto leaf = static_cast<uint32_t>(i);
    const uint32_t first = pages.FirstPosition(leaf), size = pages.LeafSize(leaf);
    leaf_sizes[leaf] = size;
    next_leaf[leaf] = pages.NextLeaf(leaf);
    first_positions[leaf] = first;
    leaf_at[leaf] = leaf;
    SetOrdinalAt(ordinal_at, pages.order_bits, leaf, first, size);
  });
}

// below[sums[i] + s] = child s of page[i].
__global__ void ListChildren(const uint32_t* page, const uint32_t* sums, uint32_t pages,
                             const uint32_t* children, const uint32_t* inner_sizes, int order,
                             uint32_t* below) {
  const auto width = static_cast<uint32_t>(order) + 1;
  ForEachIndex(size_t{pages} * width, [=](size_t item) {
    const auto i = static_cast<uint32_t>(item / width), slot = static_cast<uint32_t>(item % width);
    if (slot > inner_sizes[page[i]]) return;
    below[sums[i] + slot] = children[size_t{page[i]} * width + slot];
  });
}

__global__ void SetLeafPositions(const uint32_t* leaf_at, const uint32_t* sums, uint32_t leaves,
                                 const uint32_t* leaf_sizes, int order_bits,
                                 Position* first_positions, uint32_t* ordinal_at) {
  ForEachIndex(leaves, [=](size_t i) {
    const uint32_t leaf = leaf_at[i];
    first_positions[leaf] = sums[i];
    SetOrdinalAt(ordinal_at, order_bits, static_cast<uint32_t>(i), sums[i], leaf_sizes[leaf]);
  });
}

// sizes[page[i]] + more.
struct ListedSize {
  const uint32_t* page;
  const uint32_t* sizes;
  uint32_t more;

  __host__ __device__ uint32_t operator()(uint32_t i) const { return sizes[page[i]] + more; }
};

absl::StatusOr<size_t> SumScratchBytes(uint32_t most) {
  size_t bytes = 0;
  const auto sizes =
      thrust::make_transform_iterator(thrust::make_counting_iterator(0u), ListedSize{});
  uint32_t* const sums = nullptr;
  CAIRN_RETURN_IF_CUB_FAILS(cub::DeviceScan::ExclusiveSum(nullptr, bytes, sizes, sums, most));
  return bytes;
}

template <typename T>
absl::Status Allocate(size_t size, cudaStream_t stream, DeviceBuffer<T>* buffer) {
  ASSIGN_OR_RETURN(*buffer, DeviceBuffer<T>::Allocate(size, stream));
  return absl::OkStatus();
}

// Allocates an array for a longer copy of `from`.
template <typename T>
absl::Status AllocateLike(const DeviceBuffer<T>& from, size_t size, cudaStream_t stream,
                          DeviceBuffer<T>* buffer) {
  RETURN_IF_ERROR(Allocate(size, stream, buffer));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(buffer->data(), from.data(),
                                             std::min(from.bytes(), buffer->bytes()),
                                             cudaMemcpyDeviceToDevice, stream));
  return absl::OkStatus();
}

BPlusTreeShape ShapeOf(const BPlusTreeLayout& layout) {
  BPlusTreeShape shape;
  shape.levels = layout.levels();
  shape.entries = layout.entries();
  shape.inner_pages = layout.inner_pages();
  for (int level = 0; level < layout.levels(); ++level) {
    shape.pages[level] = layout.level(level).pages();
  }
  return shape;
}

// Pages for which there must be memory, and the number to allocate if there is not.
struct Room {
  uint64_t inner, leaves;

  // For inserts one by one. Also enough for inserting together, which rebuilds inner pages.
  Room(const BPlusTreeShape& shape, const BPlusTreeLayout& layout, size_t inserts)
      : inner(shape.inner_pages +
              BPlusTreeLayout::SpareInnerPages(layout.order(), shape.pages, inserts)),
        leaves(shape.pages[0] + uint64_t{inserts}) {
    const auto max_leaves = static_cast<uint32_t>(std::min<uint64_t>(leaves, kMaxEntries));
    const auto anew =
        BPlusTreeLayout::AboveLeaves(max_leaves, layout.order(), layout.fill()).inner_pages();
    inner = std::max<uint64_t>(inner, anew);
  }
  // A sixteenth more, so that many inserts copy the tree less often.
  uint64_t inner_to_allocate() const { return inner + inner / 16; }
  uint64_t leaves_to_allocate() const { return leaves + leaves / 16; }

  template <typename Key>
  uint64_t Bytes(int order) const {
    const uint64_t separator = sizeof(Key) + 2 * sizeof(uint32_t);
    const uint64_t leaf = LeafStride<Key>(order) * sizeof(Key) + 5 * sizeof(uint32_t);
    return inner_to_allocate() * static_cast<uint64_t>(order + 1) * separator +
           leaves_to_allocate() * leaf;
  }
};

absl::Status AllocateLinks(const Room& room, size_t order, cudaStream_t stream,
                           BPlusTreeLinks* links) {
  links->inner_room = static_cast<uint32_t>(room.inner_to_allocate());
  links->leaf_room = static_cast<uint32_t>(room.leaves_to_allocate());
  const size_t inner = links->inner_room, leaves = links->leaf_room;
  RETURN_IF_ERROR(Allocate(inner * order, stream, &links->inner_rows));
  RETURN_IF_ERROR(Allocate(inner * (order + 1), stream, &links->children));
  RETURN_IF_ERROR(Allocate(inner, stream, &links->inner_sizes));
  RETURN_IF_ERROR(Allocate(leaves, stream, &links->leaf_sizes));
  RETURN_IF_ERROR(Allocate(leaves, stream, &links->next_leaf));
  RETURN_IF_ERROR(Allocate(leaves, stream, &links->first_positions));
  RETURN_IF_ERROR(Allocate(leaves, stream, &links->leaf_at));
  return Allocate(leaves, stream, &links->ordinal_at);
}

// Builds links for packed pages.
template <typename Key>
absl::Status MakeLinks(const BPlusTreePages<Key>& pages, BPlusTreeLinks* links,
                       cudaStream_t stream) {
  const PackedPages<Key> packed = ViewPacked(pages);
  links->shape = ShapeOf(pages.layout);
  const size_t separators = pages.layout.inner_pages() * static_cast<size_t>(pages.layout.order());
  CAIRN_RETURN_IF_LAUNCH_FAILS("LinkInnerPages", SimpleShape(separators), stream,
                               LinkInnerPages<Key>, packed, links->inner_rows.data(),
                               links->children.data(), links->inner_sizes.data());
  CAIRN_RETURN_IF_LAUNCH_FAILS("LinkLeaves", SimpleShape(pages.layout.leaves()), stream,
                               LinkLeaves<Key>, packed, links->leaf_sizes.data(),
                               links->next_leaf.data(), links->first_positions.data(),
                               links->leaf_at.data(), links->ordinal_at.data());
  return absl::OkStatus();
}

// Copies all links. Inserts do not maintain the arrays by ordinal and position, which are
// recomputed afterwards, but they must be valid if nothing is inserted.
absl::Status CopyLinks(const BPlusTreeLinks& from, BPlusTreeLinks* to, cudaStream_t stream) {
  to->shape = from.shape;
  const auto copy = [&](const auto& source, const auto& target) -> absl::Status {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(target.data(), source.data(), source.bytes(),
                                               cudaMemcpyDeviceToDevice, stream));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(copy(from.inner_rows, to->inner_rows));
  RETURN_IF_ERROR(copy(from.children, to->children));
  RETURN_IF_ERROR(copy(from.inner_sizes, to->inner_sizes));
  RETURN_IF_ERROR(copy(from.leaf_sizes, to->leaf_sizes));
  RETURN_IF_ERROR(copy(from.next_leaf, to->next_leaf));
  RETURN_IF_ERROR(copy(from.first_positions, to->first_positions));
  RETURN_IF_ERROR(copy(from.leaf_at, to->leaf_at));
  return copy(from.ordinal_at, to->ordinal_at);
}

}  // namespace

uint64_t BPlusTreeLinks::bytes() const {
  return inner_rows.bytes() + children.bytes() + inner_sizes.bytes() + leaf_sizes.bytes() +
         next_leaf.bytes() + first_positions.bytes() + leaf_at.bytes() + ordinal_at.bytes();
}

void BPlusTreeLinks::SetStream(cudaStream_t stream) {
  inner_rows.SetStream(stream);
  children.SetStream(stream);
  inner_sizes.SetStream(stream);
  leaf_sizes.SetStream(stream);
  next_leaf.SetStream(stream);
  first_positions.SetStream(stream);
  leaf_at.SetStream(stream);
  ordinal_at.SetStream(stream);
}

template <typename Key>
absl::Status MakeRoom(BPlusTreePages<Key>* pages, size_t inserts, cudaStream_t stream) {
  const int order = pages->layout.order();
  const Room room(pages->links ? pages->links->shape : ShapeOf(pages->layout), pages->layout,
                  inserts);
  if (pages->links && room.inner <= pages->links->inner_room &&
      room.leaves <= pages->links->leaf_room) {
    return absl::OkStatus();
  }
  if (room.leaves_to_allocate() > UINT32_MAX || room.inner_to_allocate() > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("got %d entries, too many to insert one by one", inserts));
  }
  const uint64_t bytes = room.Bytes<Key>(order);
  RETURN_IF_ERROR(CheckDeviceMemory(bytes, "a B+-tree with room"));
  BPlusTreePages<Key> grown;
  grown.layout = pages->layout;
  BPlusTreeLinks& links = grown.links.emplace();
  RETURN_IF_ERROR(AllocateLinks(room, static_cast<size_t>(order), stream, &links));
  RETURN_IF_ERROR(AllocateLike(pages->inner, links.inner_room * static_cast<size_t>(order), stream,
                               &grown.inner));
  RETURN_IF_ERROR(
      AllocateLike(pages->leaves, links.leaf_room * LeafStride<Key>(order), stream, &grown.leaves));
  RETURN_IF_ERROR(pages->links ? CopyLinks(*pages->links, &links, stream)
                               : MakeLinks(*pages, &links, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  grown.SetStream(AfterAllUses());
  *pages = std::move(grown);
  return absl::OkStatus();
}

absl::StatusOr<LeafCount> LeafCount::Prepare(const BPlusTreeLinks& links, cudaStream_t stream) {
  LeafCount count;
  const uint32_t most = std::max(links.inner_room, links.leaf_room);
  for (DeviceBuffer<uint32_t>& pages : count.pages_) {
    RETURN_IF_ERROR(Allocate(links.inner_room, stream, &pages));
  }
  RETURN_IF_ERROR(Allocate(most, stream, &count.sums_));
  ASSIGN_OR_RETURN(const size_t bytes, SumScratchBytes(most));
  RETURN_IF_ERROR(Allocate(bytes, stream, &count.scratch_));
  return count;
}

absl::Status LeafCount::Sum(const uint32_t* list, const uint32_t* sizes, uint32_t more,
                            uint32_t pages, cudaStream_t stream) {
  const auto listed = thrust::make_transform_iterator(thrust::make_counting_iterator(0u),
                                                      ListedSize{list, sizes, more});
  size_t bytes = scratch_.bytes();
  CAIRN_RETURN_IF_CUB_FAILS(
      cub::DeviceScan::ExclusiveSum(scratch_.data(), bytes, listed, sums_.data(), pages, stream));
  return absl::OkStatus();
}

// The pages of each level in key order determine those of the next level.
absl::Status LeafCount::ListLeaves(const BPlusTreeLinks& links, int order, cudaStream_t stream) {
  const BPlusTreeShape& shape = links.shape;
  const uint32_t* level_pages = pages_[0].data();
  uint32_t* const root = shape.levels == 1 ? links.leaf_at.data() : pages_[0].data();
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(root, &shape.root, sizeof(shape.root), cudaMemcpyHostToDevice, stream));
  for (int level = shape.levels - 1; level > 0; --level) {
    const uint32_t pages = shape.pages[level];
    uint32_t* const below = level == 1                        ? links.leaf_at.data()
                            : level_pages == pages_[0].data() ? pages_[1].data()
                                                              : pages_[0].data();
    RETURN_IF_ERROR(Sum(level_pages, links.inner_sizes.data(), 1, pages, stream));
    const size_t items = size_t{pages} * static_cast<size_t>(order + 1);
    CAIRN_RETURN_IF_LAUNCH_FAILS("ListChildren", SimpleShape(items), stream, ListChildren,
                                 level_pages, sums_.data(), pages, links.children.data(),
                                 links.inner_sizes.data(), order, below);
    level_pages = below;
  }
  return absl::OkStatus();
}

absl::Status LeafCount::SetPositions(const BPlusTreeLinks& links, int order, cudaStream_t stream) {
  const uint32_t leaves = links.shape.pages[0];
  RETURN_IF_ERROR(Sum(links.leaf_at.data(), links.leaf_sizes.data(), 0, leaves, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("SetLeafPositions", SimpleShape(leaves), stream, SetLeafPositions,
                               links.leaf_at.data(), sums_.data(), leaves, links.leaf_sizes.data(),
                               std::countr_zero(static_cast<unsigned>(order)),
                               links.first_positions.data(), links.ordinal_at.data());
  return absl::OkStatus();
}

template absl::Status MakeRoom(BPlusTreePages<uint32_t>*, size_t, cudaStream_t);
template absl::Status MakeRoom(BPlusTreePages<uint64_t>*, size_t, cudaStream_t);

}  // namespace cairn::gpu
