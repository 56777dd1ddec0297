#pragma once

#include "absl/status/status.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace cairn {

// Returns whether the log may contain the record of a failed write like that of any other write. On
// the default write path, RocksDB gives a failed write's numbers to the next write, which is
// visible in the log (engine/log/update_log.h). With these options it is not.
bool FailedWritesKeepNumbers(const rocksdb::DBOptions& options);

// Returns FailedPrecondition, with the option and the reason, if the database is open with an
// option that makes the log unreliable. `reports_failed_writes`: Open has added a listener to the
// database; Attach adds none.
absl::Status CheckDatabaseOptions(rocksdb::DB* db, bool reports_failed_writes);

}  // namespace cairn
