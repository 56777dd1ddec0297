#pragma once

#include "absl/status/status.h"
#include "cairn/index_spec.h"
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

// Checks whether an index with this spec can be built from the open database and can follow its
// log. Reads no rows. These errors are permanent while the database is open:
// - InvalidArgument: compactions of the column family may drop or change rows, and the spec does
//   not ignore that (DroppedRows);
// - FailedPrecondition: a layer over the database may change values, or the database's snapshots
//   do not keep a state (unordered_write, inplace_update_support);
// - Unimplemented: the comparator, or transactions that are written before they commit.
absl::Status CheckCanFollow(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const IndexSpec& spec);

// Makes only the first of these checks: the effect of compactions on rows.
absl::Status CheckKeepsRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const IndexSpec& spec);

}  // namespace cairn
