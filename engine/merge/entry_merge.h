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

// Passes the entries of a version to a sink, with the new ids of their rows. It merges the base's
// remaining entries and the added ones in one pass. Its threads (Work) take pieces of the merged
// sequence. A search from the end of the last piece finds the next one (merge path; Green, McColl
// and Bader, GPU Merge Path, 2012). The sink receives the pieces in order. Takes memory for the
// added entries and for a few pieces.
class EntryMerge : public OrderedPipeline {
 public:
  // Begins the sink, and returns its error. At most `threads` threads may call Work. The arguments
  // must outlive the merge. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<EntryMerge>> Begin(const Delta& delta,
                                                           const MergedRowIds& ids, int threads,
                                                           MergePace* pace, EntrySink* sink);

  // Requires that the last Work has returned. DataLoss: an entry of the base refers to a row that
  // does not exist. Cancelled. The sink's error. After an error `pace` is stopped.
  const absl::Status& status() const { return status_; }

 protected:
  using OrderedPipeline::OrderedPipeline;
  absl::Status status_;  // the first error; only used by the thread that takes pieces
};

}  // namespace cairn
