#include "gpu/run/range_rows.h"

#include "gpu/run/range_rows.cuh"

namespace cairn::gpu {
namespace {

struct ColumnRows {
  const RowId* rows;
  uint32_t stride;

  __device__ RowId operator()(Position position) const { return rows[size_t{position} * stride]; }
  __device__ const RowId* column() const { return stride == 1 ? rows : nullptr; }
};

}  // namespace

absl::Status CopyRowsFromColumn(const RowColumn& column, const Position* begin,
                                const uint64_t* offsets, size_t queries, uint64_t rows, Order order,
                                RowId* out, cudaStream_t stream) {
  return CopyRowsOfRanges(ColumnRows{column.rows, column.stride}, begin, offsets, queries, rows,
                          order, out, stream);
}

}  // namespace cairn::gpu
