#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gpu/where/row_list.h"
#include "gpu/where/where_planner.h"
#include "gpu/where/where_view.h"

namespace cairn::gpu {

// The three strategies, each enqueued on `stream`.

// Where a predicate's rows go.
struct WhereOutput {
  unsigned long long* count = nullptr;  // adds how many they are; or null, and
  // kGather, kBitmap: sets their bits, in TilesOf(rows) tiles.
  uint32_t* bitmap = nullptr;
  // kScan: lists them.
  RowList list = {};
};

// Gives a view the steps of a program.
void SetProgram(const WhereProgram& program, WhereView* where);

// Reads the codes of all rows. `where` has the whole program, whose stack takes `stack` values.
absl::Status ScanWhere(const WhereView& where, size_t stack, const WhereOutput& output,
                       cudaStream_t stream);

// Tests the rows of set `driver`, at most `most` of them, for the rest of the program, which
// `where` has; without a rest, all of them are the answer. A bitmap must be clear.
absl::Status GatherWhere(const WhereView& where, uint32_t driver, uint64_t most,
                         const WhereOutput& output, cudaStream_t stream);

// Sorts the rows of all sets into parts of 2^part_bits rows, and combines the sets of one part
// after the other as bitmaps in shared memory. `where` has the whole program. `entries` bounds how
// many rows each set has, 2^32 - 1 in all. A bitmap need not be clear.
absl::Status BitmapWhere(const WhereView& where, size_t stack,
                         absl::Span<const EntryEstimate> entries, int part_bits,
                         const WhereOutput& output, cudaStream_t stream);

}  // namespace cairn::gpu
