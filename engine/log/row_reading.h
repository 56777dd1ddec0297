#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "rocksdb/db.h"

namespace cairn {

// Returns, as text, the parts outside of a database that determine its rows and keys: the name of
// the column family's merge operator, and the versions of the extractors in the spec. An index is
// valid for the rows and keys that these produced. Errors: NotFound if an extractor is not
// registered.
absl::StatusOr<std::string> RowReading(const IndexSpec& spec, rocksdb::DB* db,
                                       rocksdb::ColumnFamilyHandle* column_family);

// Returns FailedPrecondition, with both texts, if the current text differs from the one that an
// index of the spec has stored. `stored` may be empty: then nothing is known.
absl::Status CheckRowReading(const std::string& stored, const IndexSpec& spec, rocksdb::DB* db,
                             rocksdb::ColumnFamilyHandle* column_family);

}  // namespace cairn
