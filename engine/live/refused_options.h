#pragma once

#include "absl/status/status.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace cairn {

// Whether the log may have the record of a write that failed as a step like any other. By the
// default path RocksDB gives the numbers of a failed write to the next one, which shows in the log
// (engine/log/update_log.h); by these paths it does not.
bool FailedWritesKeepNumbers(const rocksdb::DBOptions& options);

// FailedPrecondition, naming the option and the reason, if the database is open with an option
// under which its log does not show which rows it has. `reports_failed_writes`: Open has given the
// database a listener; Attach has none.
absl::Status CheckDatabaseOptions(rocksdb::DB* db, bool reports_failed_writes);

}  // namespace cairn
