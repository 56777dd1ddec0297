#pragma once

#include "absl/status/status.h"
#include "rocksdb/db.h"

namespace cairn {

// FailedPrecondition, naming the option and the reason, if the database is open with an option
// under which its log does not show which rows it has. `reports_failed_writes`: Open has given the
// database a listener; Attach has none.
absl::Status CheckDatabaseOptions(rocksdb::DB* db, bool reports_failed_writes);

}  // namespace cairn
