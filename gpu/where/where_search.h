#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gpu/where/where_planner.h"
#include "gpu/where/where_view.h"

namespace cairn::gpu {

// The three strategies. Each is enqueued on `stream`, and adds to *count how many rows satisfy a
// predicate, or sets the bits of these in a bitmap of TilesOf(rows) tiles: one of the two is null.

// Gives views the steps of a program.
void SetProgram(const WhereProgram& program, WhereView* where);

// Reads the codes of all rows. `where` has the whole program, whose stack takes `stack` values. A
// bitmap need not be cleared before, and tile i's count goes to tile_counts[i].
absl::Status ScanWhere(const WhereView& where, size_t stack, unsigned long long* count,
                       uint32_t* bitmap, uint64_t* tile_counts, cudaStream_t stream);

// Tests the rows of set `driver`, at most `most` of them, for the rest of the program, which
// `where` has; without a rest, all of them are the answer. A bitmap must be clear.
absl::Status GatherWhere(const WhereView& where, uint32_t driver, uint64_t most,
                         unsigned long long* count, uint32_t* bitmap, cudaStream_t stream);

// Sorts the rows of all sets into parts of 2^part_bits rows, and combines the sets of one part
// after the other as bitmaps in shared memory. `where` has the whole program. `entries` bounds how
// many rows each set has, 2^32 - 1 in all. A bitmap need not be cleared before.
absl::Status BitmapWhere(const WhereView& where, size_t stack,
                         absl::Span<const EntryEstimate> entries, int part_bits,
                         unsigned long long* count, uint32_t* bitmap, cudaStream_t stream);

}  // namespace cairn::gpu
