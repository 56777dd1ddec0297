#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/extractor.h"
#include "rocksdb/db.h"

namespace cairn {

// How rows are read by primary key.
enum class LookupWay {
  kEntities,       // by RocksDB's reads of entities: plain rows and wide columns
  kSeeks,          // by an iterator: right even where levels are not ordered by age
  kSeeksOfValues,  // likewise, for layers that know no columns; not all of their reads agree
};

// The way to read rows with their columns from a database that returns what is stored.
LookupWay EntityLookup(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// Reads the rows with these primary keys, which ascend (InvalidArgument where they do not), and
// gives each that exists to the visitor, with its index, in order. Ends at the first error, of a
// read or of the visitor.
absl::Status LookUpRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                        const rocksdb::ReadOptions& options, LookupWay way,
                        absl::Span<const std::string_view> primary_keys,
                        const std::function<absl::Status(size_t, const RowView&)>& visitor,
                        std::string_view description);

}  // namespace cairn
