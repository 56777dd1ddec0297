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

struct RefusedOption {
  const char* name;
  bool (*is_set)(const rocksdb::DBOptions& options);
  bool if_attached;  // refused only if attached
  const char* reason;
};

// These options stay allowed. manual_wal_flush: records that are lost with the buffer leave a gap.
// allow_2pc: a transaction whose commit failed is committed again under another number, in another
// file. WALRecoveryMode: records that recovery drops leave a gap, or their numbers are used again.
// unordered_write is refused when the log is opened (engine/log/update_log.h).
constexpr RefusedOption kRefusedOptions[] = {
    {"paranoid_checks=false",
     [](const rocksdb::DBOptions& options) { return !options.paranoid_checks; },
     /*if_attached=*/false,
     "after a failed write RocksDB continues in the same log file and reports nothing, so the log "
     "may have records of failed writes"},
    {"wal_filter", [](const rocksdb::DBOptions& options) { return options.wal_filter != nullptr; },
     /*if_attached=*/false,
     "the filter has decided which records of the log the database has, and a later recovery may "
     "decide otherwise"},
    {"best_efforts_recovery",
     [](const rocksdb::DBOptions& options) { return options.best_efforts_recovery; },
     /*if_attached=*/false,
     "the database may have been opened at a state before the end of its log, and its sequence "
     "numbers do not show that"},
    {"enable_pipelined_write",
     [](const rocksdb::DBOptions& options) { return options.enable_pipelined_write; },
     /*if_attached=*/true,
     "the record of a failed write keeps its sequence number in the log, so only a listener that "
     "IndexedDB::Open adds can detect it"},
    {"two_write_queues", [](const rocksdb::DBOptions& options) { return options.two_write_queues; },
     /*if_attached=*/true,
     "the record of a failed write keeps its sequence number in the log, so only a listener that "
     "IndexedDB::Open adds can detect it"},
};

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

bool FailedWritesKeepNumbers(const rocksdb::DBOptions& options) {
  return options.enable_pipelined_write || options.two_write_queues;
}

absl::Status CheckDatabaseOptions(rocksdb::DB* db, bool reports_failed_writes) {
  const rocksdb::DBOptions options = db->GetDBOptions();
  for (const RefusedOption& option : kRefusedOptions) {
    if ((option.if_attached && reports_failed_writes) || !option.is_set(options)) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("database '%s' is open with %s, so no index of it can be trusted: %s",
                        db->GetName(), option.name, option.reason));
  }
  return absl::OkStatus();
}

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
