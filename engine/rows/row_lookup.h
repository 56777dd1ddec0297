#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/extractor.h"
#include "rocksdb/db.h"

namespace cairn {

// How to read rows by primary key.
enum class LookupWay {
  kEntities,       // by RocksDB's reads of entities: plain rows and wide columns
  kSeeks,          // by an iterator; correct even if levels are not ordered by age
  kSeeksOfValues,  // by an iterator, for layers without columns, whose other reads may disagree
};

// Returns the way to read rows with their columns from a database that returns rows as stored.
LookupWay EntityLookup(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// Reads the rows with these primary keys, and calls the visitor for each row that exists, in order,
// with its index. Stops at the first error of a read or of the visitor. InvalidArgument: the
// primary keys do not ascend.
absl::Status LookUpRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                        const rocksdb::ReadOptions& options, LookupWay way,
                        absl::Span<const std::string_view> primary_keys,
                        const std::function<absl::Status(size_t, const RowView&)>& visitor,
                        std::string_view description);

}  // namespace cairn
