#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/log/table_files.h"
#include "rocksdb/db.h"

namespace cairn {

// The number of the newest SST file of a column family that was ingested (IngestExternalFile) or
// imported, not written by the database, as of sequence number `until`, which is that of a snapshot
// held: 0 if there is none among those that `seen` does not list as seen or, if `seen` is null,
// among those with a number above `known`.
//
// A file that is ingested where no key of its own lies takes no sequence number, unless a snapshot
// is held: the log does not show that, and this does, until the file is compacted with others. So
// an index remembers the files that were seen, and one that comes later says that rows came past
// the log. Properties are read of the files that are left, and of others whose keys are between
// theirs; the time is linear in the number of files. A file that another database wrote for a
// column family of the same id, and that was ingested under the number that it had there, is taken
// for the database's own if DBOptions::write_dbid_to_manifest is off.
//
// Needs nothing but the database, and no lock of the caller's.
absl::StatusOr<uint64_t> NewestIngestedFile(rocksdb::DB* db,
                                            rocksdb::ColumnFamilyHandle* column_family,
                                            SequenceNumber until, uint64_t known = 0,
                                            const TableFiles* seen = nullptr);

}  // namespace cairn
