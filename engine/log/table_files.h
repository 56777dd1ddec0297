#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"

namespace cairn {

// What a database has in table files and what in memory, as far as it tells history from history.

// The number of entries in a column family's memory.
uint64_t EntriesInMemory(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// All table files that are live.
std::vector<rocksdb::LiveFileMetaData> LiveFiles(rocksdb::DB* db);

// The newest of the files that belong to the column family, or of all where it is null; null for
// none.
const rocksdb::LiveFileMetaData* Newest(const std::vector<rocksdb::LiveFileMetaData>& files,
                                        rocksdb::ColumnFamilyHandle* column_family);

// What names a table file of the column family for good: "number:unique id"; empty where it is not
// live, or has no id.
absl::StatusOr<std::string> OwnFileId(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                      uint64_t number);
// The same for a file of any column family, of which there is perhaps no handle: its number, and
// what the database knows of it without reading it.
std::string AnyFileId(const rocksdb::LiveFileMetaData& file);

}  // namespace cairn
