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

// Extracts the keys of changed rows: converts changes from the log to updates of one index. Not
// thread-safe.
class ChangeExtractor {
 public:
  // Errors: those of RowExtractor::Create.
  static absl::StatusOr<ChangeExtractor> Create(const IndexSpec& spec);

  // Sets *updates to the net effect of the changes. Rows that must be looked up are read from
  // `source`, which may be null if there are none. Errors: InvalidArgument, with the primary key: a
  // row cannot be read under ErrorPolicy::kFail; errors of `source`. Under kSkip such a row has no
  // keys, and is counted. May throw exceptions of a custom extractor, and std::bad_alloc.
  absl::Status Extract(const SettledChanges& changes, const SnapshotSource* source,
                       RowUpdates* updates);

  uint64_t rows_skipped() const { return rows_skipped_; }

 private:
  ChangeExtractor(const IndexSpec& spec, RowExtractor extractor)
      : on_error_(spec.on_error), extractor_(std::move(extractor)) {}

  absl::Status ExtractRow(const RowView& row, RowUpdates* updates);
  // Ends a row with the keys appended since the previous one, and with tuple_.
  void EndRow(std::string_view primary_key, RowUpdates* updates);
  absl::Status LookUp(const SnapshotSource& source, RowUpdates* updates);

  ErrorPolicy on_error_;
  RowExtractor extractor_;
  RowExtractor::Scratch scratch_;
  std::string tuple_;  // of the current row, if the index includes columns
  std::vector<ColumnView> columns_;
  std::vector<std::string_view> looked_up_;  // primary keys of rows to look up, ascending
  uint64_t rows_skipped_ = 0;
};

}  // namespace cairn
