#include "engine/live/refused_options.h"

#include <string>

#include "absl/strings/str_format.h"
#include "rocksdb/options.h"

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

}  // namespace cairn
