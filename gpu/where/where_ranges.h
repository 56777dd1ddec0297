#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/where/where_planner.h"
#include "gpu/where/where_view.h"

namespace cairn::gpu {

// A column's sorted keys, as the search for ranges reads them: in device memory, where an array of
// these is, too.
struct WhereKeysView {
  const void* keys;
  uint32_t entries;
  bool wide;  // 64 bits each
};

// A predicate's ranges in device memory.
struct WhereRanges {
  DeviceBuffer<Position> begins, ends;
  DeviceBuffer<uint32_t> before;
  DeviceBuffer<WhereSetState> states;
};

// Finds the positions of all ranges of a predicate's sets: enqueued on `stream`, which may be being
// captured; the sets need not stay. `columns` is in device memory; `entries[c]` is how many column
// c has. *where gets `sets[i].first_range` and `.ranges`, and what points to the ranges; rows and
// bucket are set before.
absl::Status FindWhereRanges(absl::Span<const WhereSet> sets, const WhereKeysView* columns,
                             absl::Span<const uint32_t> entries, WhereView* where,
                             WhereRanges* ranges, cudaStream_t stream);

}  // namespace cairn::gpu
