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

// A column's sorted keys for the search for ranges. The keys are in device memory, and so is an
// array of these views.
struct WhereKeysView {
  const void* keys;
  uint32_t entries;
  bool wide;  // whether keys have 64 bits
};

// A predicate's ranges in device memory.
struct WhereRanges {
  DeviceBuffer<Position> begins, ends;
  DeviceBuffer<uint32_t> before;
  DeviceBuffer<WhereSetState> states;
};

// Finds the positions of all ranges of a predicate's sets. Enqueued on `stream`, which may be being
// captured; `sets` need not stay valid. `columns` is in device memory; `entries[c]` is the number
// of entries of column c. Sets `sets[i].first_range` and `.ranges` of *where, and its pointers to
// the ranges; `rows` and `bucket` must already be set.
absl::Status FindWhereRanges(absl::Span<const WhereSet> sets, const WhereKeysView* columns,
                             absl::Span<const uint32_t> entries, WhereView* where,
                             WhereRanges* ranges, cudaStream_t stream);

}  // namespace cairn::gpu
