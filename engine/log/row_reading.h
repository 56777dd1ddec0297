#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "rocksdb/db.h"

namespace cairn {

// What makes rows and keys of a database's bytes and is not in the database, as text: the name of
// the column family's merge operator, and the versions of the extractors that the spec names. An
// index is of the rows and keys that these gave. NotFound if an extractor is not registered.
absl::StatusOr<std::string> RowReading(const IndexSpec& spec, rocksdb::DB* db,
                                       rocksdb::ColumnFamilyHandle* column_family);

// FailedPrecondition, naming both, if rows and keys are made by other means than an index of the
// spec has stored. `stored` may be empty: then nothing is known.
absl::Status CheckRowReading(const std::string& stored, const IndexSpec& spec, rocksdb::DB* db,
                             rocksdb::ColumnFamilyHandle* column_family);

}  // namespace cairn
