#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/delta/delta.h"
#include "engine/merge/merge_pace.h"
#include "engine/merge/merged_row_ids.h"
#include "engine/util/ordered_pipeline.h"
#include "index/run/entry_sink.h"

namespace cairn {

// Passes the entries that a version has to a sink, under their rows' new ids: those of the base
// that are left and those that came, merged in one pass over both. Its threads (Work) take pieces
// of the merged sequence, each found by a search where the last one ended (merge path; Green,
// McColl and Bader, GPU Merge Path, 2012); the sink has them in order. Takes memory for the entries
// that came and for a few pieces.
class EntryMerge : public OrderedPipeline {
 public:
  // For up to `threads` threads. Begins the sink, and returns its error. All that is given must
  // outlive the merge. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<EntryMerge>> Begin(const Delta& delta,
                                                           const MergedRowIds& ids, int threads,
                                                           MergePace* pace, EntrySink* sink);

  // Once the last Work has returned: DataLoss where an entry of the base names a row that there is
  // not; Cancelled; the sink's error. After an error `pace` is stopped.
  const absl::Status& status() const { return status_; }

 protected:
  using OrderedPipeline::OrderedPipeline;
  absl::Status status_;  // the first error; of the thread that takes
};

}  // namespace cairn
