#pragma once

#include "absl/status/status.h"
#include "engine/delta.h"
#include "engine/merge_pace.h"
#include "engine/merged_row_ids.h"
#include "index/entry_sink.h"

namespace cairn {

// Passes the entries that a version has to `sink`, under their rows' new ids: those of the base
// that are left and those that came, merged in one pass over both. Works on pieces of the merged
// sequence side by side, each found by a search where the last one ended (merge path; Green, McColl
// and Bader, GPU Merge Path, 2012); the sink has them in order. Takes memory for the entries that
// came and for a few pieces.
//
// DataLoss where an entry of the base names a row that there is not; Cancelled; the sink's errors.
// Throws std::bad_alloc.
absl::Status MergeEntries(const Delta& delta, const MergedRowIds& ids, int threads, MergePace* pace,
                          EntrySink* sink);

}  // namespace cairn
