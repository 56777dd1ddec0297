#include "engine/live/can_follow.h"

#include <string>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "engine/log/update_log.h"
#include "engine/serve/change_extractor.h"
#include "engine/source/db_source.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/options.h"
#include "rocksdb/snapshot.h"

namespace cairn {
namespace {

// Returns why compactions may drop or change rows; empty if they do not.
std::string WhyRowsGo(const rocksdb::ColumnFamilyOptions& options) {
  if (options.compaction_filter != nullptr) {
    return absl::StrFormat("compaction_filter '%s'", options.compaction_filter->Name());
  }
  if (options.compaction_filter_factory != nullptr) {
    return absl::StrFormat("compaction_filter_factory '%s'",
                           options.compaction_filter_factory->Name());
  }
  if (options.compaction_style == rocksdb::kCompactionStyleFIFO) return "FIFO compaction";
  return std::string();
}

}  // namespace

absl::Status CheckKeepsRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const IndexSpec& spec) {
  if (spec.dropped_rows == DroppedRows::kIgnore) return absl::OkStatus();
  const std::string why = WhyRowsGo(db->GetOptions(column_family));
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "index %s: compactions of column family %s may drop or change rows (%s), which the log does "
      "not record; create the index with dropped_rows=ignore to keep the entries of such rows",
      Quoted(spec.name), Quoted(column_family->GetName()), why));
}

absl::Status CheckCanFollow(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const IndexSpec& spec) {
  RETURN_IF_ERROR(ChangeExtractor::Create(spec).status());
  RETURN_IF_ERROR(CheckKeepsRows(db, column_family, spec));
  if (MayChangeValues(db, column_family)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "index %s: database '%s' is read through a layer that makes its own iterators and may "
        "change values (DBWithTTL, for example), which the log does not record; if the layers keep "
        "values as they are, set IndexedDBOptions::layers_keep_values",
        Quoted(spec.name), db->GetName()));
  }
  rocksdb::ManagedSnapshot snapshot(db);
  if (snapshot.snapshot() == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrFormat("index %s: database '%s' does not support snapshots "
                        "(inplace_update_support), so no frozen state of it can be read",
                        Quoted(spec.name), db->GetName()));
  }
  const SequenceNumber now = snapshot.snapshot()->GetSequenceNumber();
  return UpdateLog::Open(db, absl::MakeConstSpan(&column_family, 1), now, now).status();
}

}  // namespace cairn
