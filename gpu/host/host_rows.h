#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "gpu/host/host_batch.h"
#include "gpu/host/query_context.h"

namespace cairn::gpu {

// Copies the row ids of ranges from the device. The host knows the positions [begin[i], end[i]) of
// the ranges, and their `offsets` in a FindResult, which already include options.limit. Writes to
// row_ids[offsets[i]] and after. Row ids are copied in pieces, which may end within a range, so
// that memory is bounded however long a range is; several pieces are in flight at a time. Waits;
// nothing is in flight afterwards. Errors: those of RunHostBatch.
absl::Status CopyRowsToHost(const DeviceIndex& index, absl::Span<const Position> begin,
                            absl::Span<const Position> end, absl::Span<const uint64_t> offsets,
                            Order order, RowId* row_ids, const HostBatchPolicy& policy,
                            QueryContext& context);

}  // namespace cairn::gpu
