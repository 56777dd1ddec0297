#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/snapshot_source.h"
#include "engine/delta/row_updates.h"
#include "engine/extract/row_extractor.h"
#include "engine/log/settled_changes.h"

namespace cairn {

// Takes the keys of rows that have changed: from changes, as the log has them, to updates of one
// index. Not thread-safe.
class ChangeExtractor {
 public:
  // Errors as RowExtractor::Create's.
  static absl::StatusOr<ChangeExtractor> Create(const IndexSpec& spec);

  // Sets *updates to what the changes come to. Rows that are to be looked up are read from
  // `source`, which may be null where there are none. InvalidArgument, naming the primary key, for
  // a row that cannot be read under ErrorPolicy::kFail; under kSkip such a row has no keys, and is
  // counted. Errors of `source`. May throw what a custom extractor throws, and std::bad_alloc.
  absl::Status Extract(const SettledChanges& changes, const SnapshotSource* source,
                       RowUpdates* updates);

  uint64_t rows_skipped() const { return rows_skipped_; }

 private:
  ChangeExtractor(const IndexSpec& spec, RowExtractor extractor)
      : on_error_(spec.on_error), extractor_(std::move(extractor)) {}

  absl::Status ExtractRow(const RowView& row, RowUpdates* updates);
  // Ends a row with the keys appended since the last one, and with tuple_.
  void EndRow(std::string_view primary_key, RowUpdates* updates);
  absl::Status LookUp(const SnapshotSource& source, RowUpdates* updates);

  ErrorPolicy on_error_;
  RowExtractor extractor_;
  RowExtractor::Scratch scratch_;
  std::string tuple_;  // of the row at hand, where the index includes columns
  std::vector<ColumnView> columns_;
  std::vector<std::string_view> looked_up_;  // primary keys of rows to look up, ascending
  uint64_t rows_skipped_ = 0;
};

}  // namespace cairn
