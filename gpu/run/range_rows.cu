#include "gpu/run/range_rows.h"

#include "gpu/run/range_rows.cuh"

namespace cairn::gpu {
namespace {

struct ColumnRows {
  RowColumn column_;

  __device__ RowId operator()(Position position) const {
    const size_t at = column_.at != nullptr ? column_.at[position] : position;
    return column_.rows[at * column_.stride];
  }
  __device__ const RowId* column() const {
    return column_.stride == 1 && column_.at == nullptr ? column_.rows : nullptr;
  }
};

}  // namespace

absl::Status CopyRowsFromColumn(const RowColumn& column, const Position* begin,
                                const uint64_t* offsets, size_t queries, uint64_t rows, Order order,
                                RowId* out, cudaStream_t stream) {
  return CopyRowsOfRanges(ColumnRows{column}, begin, offsets, queries, rows, order, out, stream);
}

}  // namespace cairn::gpu
