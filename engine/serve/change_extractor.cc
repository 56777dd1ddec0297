#include "engine/serve/change_extractor.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {

absl::StatusOr<ChangeExtractor> ChangeExtractor::Create(const IndexSpec& spec) {
  ASSIGN_OR_RETURN(RowExtractor extractor, RowExtractor::Create(spec));
  return ChangeExtractor(spec, std::move(extractor));
}

absl::Status ChangeExtractor::Extract(const SettledChanges& changes, const SnapshotSource* source,
                                      RowUpdates* updates) {
  updates->Clear();
  looked_up_.clear();
  for (const SettledChanges::Range& range : changes.deleted_ranges()) {
    updates->DeleteRange(range.lower, range.upper);
  }
  for (const RowChange& change : changes.rows()) {
    switch (change.kind) {
      case RowChangeKind::kPut:
      case RowChangeKind::kPutEntity: {
        RowView row;
        SetRow(change, &columns_, &row);
        RETURN_IF_ERROR(ExtractRow(row, updates));
        break;
      }
      case RowChangeKind::kDelete:
        EndRow(change.key, updates);
        break;
      case RowChangeKind::kLookUp:
        looked_up_.push_back(change.key);
        break;
      case RowChangeKind::kDeleteRange:
        break;  // contained in deleted_ranges()
    }
  }
  if (looked_up_.empty()) return absl::OkStatus();
  if (source == nullptr) return absl::InternalError("no source to read rows from");
  return LookUp(*source, updates);
}

absl::Status ChangeExtractor::LookUp(const SnapshotSource& source, RowUpdates* updates) {
  size_t next = 0;  // in looked_up_; the source skips missing rows
  const auto end_missing = [&](size_t end) {
    for (; next < end; ++next) EndRow(looked_up_[next], updates);
  };
  absl::Status status = source.Get(looked_up_, [&](size_t i, const RowView& row) {
    end_missing(i);
    ++next;
    return ExtractRow(row, updates);
  });
  if (!status.ok()) return status;
  end_missing(looked_up_.size());
  return absl::OkStatus();
}

absl::Status ChangeExtractor::ExtractRow(const RowView& row, RowUpdates* updates) {
  tuple_.clear();
  const absl::Status status =
      extractor_.Extract(row, &scratch_, &updates->keys, extractor_.includes() ? &tuple_ : nullptr);
  if (!status.ok()) {
    if (on_error_ == ErrorPolicy::kFail) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "row '%s': %s", EscapeBytes(row.primary_key), std::string(status.message())));
    }
    ++rows_skipped_;
    tuple_.clear();
  }
  EndRow(row.primary_key, updates);
  return absl::OkStatus();
}

void ChangeExtractor::EndRow(std::string_view primary_key, RowUpdates* updates) {
  updates->EndRow(primary_key);
  if (!extractor_.includes()) return;
  updates->tuples.Append(tuple_);
  tuple_.clear();
}

}  // namespace cairn
