#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gpu/where/where_planner.h"
#include "gpu/where/where_view.h"

namespace cairn::gpu {

// The three strategies. Each is enqueued on `stream`. It either adds the number of matching rows to
// *count, or sets their bits in a bitmap of TilesOf(rows) tiles. One of the two pointers is null.

// Copies the steps of a program to the view.
void SetProgram(const WhereProgram& program, WhereView* where);

// Reads the codes of all rows. `where` has the whole program, whose stack needs `stack` values. The
// bitmap need not be cleared before; the count of tile i is written to tile_counts[i].
absl::Status ScanWhere(const WhereView& where, size_t stack, unsigned long long* count,
                       uint32_t* bitmap, uint64_t* tile_counts, cudaStream_t stream);

// Tests the rows of set `driver`, at most `most` rows, for the rest of the program in `where`.
// Without a rest, all of them match. The bitmap must be clear.
absl::Status GatherWhere(const WhereView& where, uint32_t driver, uint64_t most,
                         unsigned long long* count, uint32_t* bitmap, cudaStream_t stream);

// Sorts the rows of all sets into partitions of 2^part_bits rows, and combines the sets of one
// partition after another as bitmaps in shared memory. `where` has the whole program. `entries`
// bounds the number of rows of each set, together at most 2^32 - 1. The bitmap need not be cleared
// before.
absl::Status BitmapWhere(const WhereView& where, size_t stack,
                         absl::Span<const EntryEstimate> entries, int part_bits,
                         unsigned long long* count, uint32_t* bitmap, cudaStream_t stream);

}  // namespace cairn::gpu
