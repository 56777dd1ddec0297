#include <limits>
#include <type_traits>
#include <utility>

#include "gpu/btree/b_plus_tree_pages.cuh"
#include "gpu/btree/b_plus_tree_pages.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Entries that a thread writes to a leaf together: a 16-byte vector of keys.
template <typename Key>
inline constexpr uint32_t kVector = 16 / sizeof(Key);

// to[0] … to[kVector - 1] = from[0] … from[count - 1], padded with `empty`.
template <uint32_t kCount, typename T>
__device__ void CopyVector(const T* from, uint32_t count, T empty, T* to) {
  using Vector = std::conditional_t<kCount * sizeof(T) == 16, uint4, uint2>;
  union {
    Vector vector;
    T items[kCount];
  } values;
  if (count >= kCount && reinterpret_cast<uintptr_t>(from) % sizeof(Vector) == 0) {
    values.vector = __ldcs(reinterpret_cast<const Vector*>(from));
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) values.items[i] = i < count ? from[i] : empty;
  }
  *reinterpret_cast<Vector*>(to) = values.vector;
}

template <typename Key>
__global__ void CreateLeaves(const __grid_constant__ BPlusTreeLayout layout, int order_bits,
                             const Key* keys, const RowId* row_ids, Key* leaves) {
  const uint32_t order = 1u << order_bits;
  const size_t vectors = (size_t{layout.leaves()} << order_bits) / kVector<Key>;
  ForEachIndex(vectors, [&](size_t i) {
    const size_t place = i * kVector<Key>;
    const auto leaf = static_cast<uint32_t>(place >> order_bits);
    const uint32_t slot = static_cast<uint32_t>(place) & (order - 1);
    const uint32_t size = layout.level(0).size(leaf);
    const uint32_t count = slot < size ? size - slot : 0;
    const size_t entry = size_t{layout.level(0).first(leaf)} + slot;
    Key* const page = leaves + leaf * LeafStride<Key>(static_cast<int>(order));
    CopyVector<kVector<Key>>(keys + entry, count, std::numeric_limits<Key>::max(), page + slot);
    CopyVector<kVector<Key>>(row_ids + entry, count, kNoRow,
                             reinterpret_cast<RowId*>(page + order) + slot);
  });
}

// Creates all levels together: a separator is the key of an entry whose number is computed. Pages
// need no adjustment afterwards, because the computation includes how the two rightmost pages of
// each level share their items.
template <typename Key>
__global__ void CreateInnerPages(const __grid_constant__ BPlusTreeLayout layout, int order_bits,
                                 const Key* keys, Key* inner) {
  ForEachIndex(size_t{layout.inner_pages()} << order_bits, [&](size_t i) {
    const auto number = static_cast<uint32_t>(i >> order_bits);
    const uint32_t slot = static_cast<uint32_t>(i) & ((1u << order_bits) - 1);
    const int level = layout.level_of(number);
    const uint32_t page = number - layout.first_page(level);
    inner[i] = slot < layout.separators(level, page)
                   ? keys[layout.SeparatorEntry(level, page, slot)]
                   : std::numeric_limits<Key>::max();
  });
}

template <typename Key, typename Pages>
__global__ void CopyEntries(const __grid_constant__ Pages pages, Key* keys, RowId* row_ids) {
  ForEachIndex(size_t{pages.leaf_count()} << pages.order_bits, [&](size_t i) {
    const auto leaf = static_cast<uint32_t>(i >> pages.order_bits);
    const uint32_t slot = static_cast<uint32_t>(i) & (pages.order() - 1);
    if (slot >= pages.LeafSize(leaf)) return;
    const size_t position = size_t{pages.FirstPosition(leaf)} + slot;
    keys[position] = pages.Keys(leaf)[slot];
    row_ids[position] = pages.Rows(leaf)[slot];
  });
}

}  // namespace

template <typename Key>
absl::StatusOr<BPlusTreePages<Key>> CreatePages(const Key* keys, const RowId* row_ids,
                                                const BPlusTreeLayout& layout,
                                                cudaStream_t stream) {
  RETURN_IF_ERROR(CheckDeviceMemory(PackedBytes<Key>(layout), "a B+-tree"));
  const auto order = static_cast<size_t>(layout.order());
  const size_t separators = layout.inner_pages() * order;
  const size_t slots = layout.leaves() * order;
  ASSIGN_OR_RETURN(DeviceBuffer<Key> inner, DeviceBuffer<Key>::Allocate(separators, stream));
  ASSIGN_OR_RETURN(
      DeviceBuffer<Key> leaves,
      DeviceBuffer<Key>::Allocate(layout.leaves() * LeafStride<Key>(layout.order()), stream));
  const int bits = std::countr_zero(order);
  CAIRN_RETURN_IF_LAUNCH_FAILS("CreateLeaves", SimpleShape(slots / kVector<Key>), stream,
                               CreateLeaves<Key>, layout, bits, keys, row_ids, leaves.data());
  CAIRN_RETURN_IF_LAUNCH_FAILS("CreateInnerPages", SimpleShape(separators), stream,
                               CreateInnerPages<Key>, layout, bits, keys, inner.data());
  BPlusTreePages<Key> pages;
  pages.layout = layout;
  pages.inner = std::move(inner);
  pages.leaves = std::move(leaves);
  return pages;
}

template <typename Key>
absl::StatusOr<DeviceRun<Key>> ExtractRun(const BPlusTreePages<Key>& pages, cudaStream_t stream) {
  DeviceRun<Key> run;
  ASSIGN_OR_RETURN(DeviceBuffer<Key> keys, DeviceBuffer<Key>::Allocate(pages.entries(), stream));
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> row_ids,
                   DeviceBuffer<RowId>::Allocate(pages.entries(), stream));
  RETURN_IF_ERROR(VisitPages(pages, [&](const auto& view) -> absl::Status {
    CAIRN_RETURN_IF_LAUNCH_FAILS("CopyEntries", SimpleShape(pages.leaves.size()), stream,
                                 CopyEntries<Key, std::decay_t<decltype(view)>>, view, keys.data(),
                                 row_ids.data());
    return absl::OkStatus();
  }));
  run.keys = std::move(keys);
  run.row_ids = std::move(row_ids);
  return run;
}

template <typename Key>
uint64_t BPlusTreePages<Key>::bytes() const {
  return inner.bytes() + leaves.bytes() + (links ? links->bytes() : 0);
}

template <typename Key>
void BPlusTreePages<Key>::SetStream(cudaStream_t stream) {
  inner.SetStream(stream);
  leaves.SetStream(stream);
  if (links) links->SetStream(stream);
}

template struct BPlusTreePages<uint32_t>;
template struct BPlusTreePages<uint64_t>;
template absl::StatusOr<BPlusTreePages<uint32_t>> CreatePages(const uint32_t*, const RowId*,
                                                              const BPlusTreeLayout&, cudaStream_t);
template absl::StatusOr<BPlusTreePages<uint64_t>> CreatePages(const uint64_t*, const RowId*,
                                                              const BPlusTreeLayout&, cudaStream_t);
template absl::StatusOr<DeviceRun<uint32_t>> ExtractRun(const BPlusTreePages<uint32_t>&,
                                                        cudaStream_t);
template absl::StatusOr<DeviceRun<uint64_t>> ExtractRun(const BPlusTreePages<uint64_t>&,
                                                        cudaStream_t);

}  // namespace cairn::gpu
