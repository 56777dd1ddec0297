#include "gpu/btree/b_plus_tree_rows.h"

#include "gpu/btree/b_plus_tree_pages.cuh"
#include "gpu/run/range_rows.cuh"

namespace cairn::gpu {
namespace {

// The row id at a position, for CopyRowsOfRanges.
template <typename Pages>
struct LeafRows {
  Pages pages;

  __device__ RowId operator()(Position position) const {
    const uint32_t leaf = pages.LeafAt(pages.OrdinalOf(position));
    return pages.Rows(leaf)[position - pages.FirstPosition(leaf)];
  }
  __device__ const RowId* column() const { return nullptr; }
};

}  // namespace

template <typename Key>
absl::Status CopyRowsFromPages(const BPlusTreePages<Key>& pages, const Position* begin,
                               const uint64_t* offsets, size_t queries, uint64_t rows, Order order,
                               RowId* out, cudaStream_t stream) {
  return VisitPages(pages, [&](const auto& view) {
    using Pages = std::decay_t<decltype(view)>;
    return CopyRowsOfRanges(LeafRows<Pages>{view}, begin, offsets, queries, rows, order, out,
                            stream);
  });
}

template absl::Status CopyRowsFromPages(const BPlusTreePages<uint32_t>&, const Position*,
                                        const uint64_t*, size_t, uint64_t, Order, RowId*,
                                        cudaStream_t);
template absl::Status CopyRowsFromPages(const BPlusTreePages<uint64_t>&, const Position*,
                                        const uint64_t*, size_t, uint64_t, Order, RowId*,
                                        cudaStream_t);

}  // namespace cairn::gpu
