#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/log/table_files.h"
#include "rocksdb/db.h"

namespace cairn {

// Returns the number of the newest SST file of a column family that the database did not write
// itself, but that was ingested (IngestExternalFile) or imported. Only files up to the sequence
// number `until` count, that of a snapshot that the caller holds. Considers the files that `seen`
// does not list as seen or, if `seen` is null, those with a number greater than `known`. Returns 0
// if there is none.
//
// If no snapshot is held, a file that is ingested into a range without keys gets no sequence
// number. Then the log does not show the ingestion, but this function does, until the file is
// compacted. So an index remembers the files that it has seen, and a new one reveals that rows
// bypassed the log. The function reads the properties of the files that it considers, and of other
// files with keys between theirs. The time is linear in the number of files. One case goes
// unnoticed: another database wrote the file for a column family of the same id, it was ingested
// under the same number, and DBOptions::write_dbid_to_manifest is off.
//
// Uses only the database, and no lock of the caller.
absl::StatusOr<uint64_t> NewestIngestedFile(rocksdb::DB* db,
                                            rocksdb::ColumnFamilyHandle* column_family,
                                            SequenceNumber until, uint64_t known = 0,
                                            const TableFiles* seen = nullptr);

}  // namespace cairn
