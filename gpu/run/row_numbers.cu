#include "gpu/run/row_numbers.h"

#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

__global__ void WriteRowNumbers(RowId* row_ids, size_t size) {
  ForEachIndex(size, [=](size_t i) { row_ids[i] = static_cast<RowId>(i); });
}

}  // namespace

absl::StatusOr<DeviceBuffer<RowId>> RowNumbers(size_t size, cudaStream_t stream) {
  DeviceBuffer<RowId> row_ids;
  RETURN_IF_ERROR(Resize(&row_ids, size, stream));
  if (size == 0) return row_ids;
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteRowNumbers", SimpleShape(size), stream, WriteRowNumbers,
                               row_ids.data(), size);
  return row_ids;
}

}  // namespace cairn::gpu
