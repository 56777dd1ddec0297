#pragma once

#include "absl/status/status.h"
#include "cairn/index_spec.h"
#include "rocksdb/db.h"

namespace cairn {

// Checks whether an index with this spec can be built from the database, as it is open, and can
// follow its log. Reads no rows. An error of these codes does not pass while the database is open:
// - InvalidArgument: compactions of the column family may drop or change rows, and the spec does
//   not ignore that (DroppedRows);
// - FailedPrecondition: a layer over the database may change values, or the database's snapshots
//   do not keep a state (unordered_write, inplace_update_support);
// - Unimplemented: the comparator, or transactions that are written before they commit.
absl::Status CheckCanFollow(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const IndexSpec& spec);

// The first of these: what compactions do.
absl::Status CheckKeepsRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const IndexSpec& spec);

}  // namespace cairn
