#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "rocksdb/db.h"

namespace cairn {

// The number of the newest SST file of a column family that was ingested (IngestExternalFile) or
// imported, not written by the database, as of sequence number `until`, which is that of a snapshot
// held: 0 where there is none with a number above `known`.
//
// A file that is ingested where no key of its own lies takes no sequence number, unless a snapshot
// is held: the log does not show that, and this does, until the file is compacted with others. So
// an index keeps the number as of its sequence number, and one that is greater later says that rows
// came past the log. Files written since `known` are looked into, others not. A file that another
// database wrote for a column family of the same id, and that was ingested under the number that it
// had there, is taken for the database's own if DBOptions::write_dbid_to_manifest is off.
absl::StatusOr<uint64_t> NewestIngestedFile(rocksdb::DB* db,
                                            rocksdb::ColumnFamilyHandle* column_family,
                                            SequenceNumber until, uint64_t known = 0);

}  // namespace cairn
