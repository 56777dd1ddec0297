#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "gpu/host/host_batch.h"
#include "gpu/host/query_context.h"

namespace cairn::gpu {

// Has the device copy the rows of ranges whose positions [begin[i], end[i]) the host knows: of each
// as many as options.limit lets pass, to row_ids[offsets[i]] and after, where `offsets` are those
// of a FindResult. Rows come in pieces, cut wherever a piece is full, so that memory is bounded
// however long a range is; several pieces are under way at a time. Waits; nothing is in flight
// afterwards. Errors as RunHostBatch's.
absl::Status CopyRowsToHost(const DeviceIndex& index, absl::Span<const Position> begin,
                            absl::Span<const Position> end, absl::Span<const uint64_t> offsets,
                            Order order, RowId* row_ids, const HostBatchPolicy& policy,
                            QueryContext& context);

}  // namespace cairn::gpu
