#pragma once

#include <cstdint>
#include <set>

#include "absl/status/statusor.h"
#include "rocksdb/db.h"

namespace cairn {

// The ids of the column families that an open database has now: those that were added and not
// dropped, as its MANIFEST lists them. rocksdb::DB has no call for that: a handle of a dropped
// column family works on, and a new one of its name has another id. Reads the whole file.
// Errors: DataLoss if CURRENT names no MANIFEST; RocksDB's own errors of reading.
absl::StatusOr<std::set<uint32_t>> LiveColumnFamilyIds(rocksdb::DB* db);

}  // namespace cairn
