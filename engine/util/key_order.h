#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/key_order.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/slice.h"

namespace cairn {

// Everything above RocksDB sees primary keys in the order of bytes: row cursors, changes, row
// tables and the key ranges of table files. Only code that gives keys to RocksDB, or gets ranges of
// keys from it, needs a KeyOrder:
// - A column family in reverse order is scanned backwards.
// - RocksDB's range [begin, end) has the keys after `end` up to and including `begin`
//   (RowChanges::DeleteRange).
// - The first key of a table file is its last one in the order of bytes.

// The order of comparators of this name; nullopt if it is unknown.
std::optional<KeyOrder> KeyOrderOfName(std::string_view name);

// Returns the order of a column family's keys. `where` is the database in messages. Errors:
// Unimplemented, with the comparator, the column family and the remedy, if the order is unknown or
// keys end in a timestamp.
absl::StatusOr<KeyOrder> KeyOrderOf(const rocksdb::Comparator* comparator,
                                    std::string_view column_family, std::string_view where);
// The same for a column family whose order is known, because a source or a log of it was opened.
KeyOrder KnownKeyOrderOf(const rocksdb::ColumnFamilyHandle* column_family);

// The error for a comparator of unknown order. `what` names the keys.
absl::Status UnknownComparator(std::string_view what, std::string_view comparator);

// Returns a comparator of this name and order, for opening a database whose own comparator is not
// compiled in. It is never destroyed.
const rocksdb::Comparator* ComparatorOfName(std::string_view name, KeyOrder order);

// The first key after `key` in the order of bytes.
inline std::string KeyAfter(std::string_view key) {
  return std::string(key) + '\0';
}

// Whether `a` is before `b` in this order.
inline bool IsBefore(KeyOrder order, std::string_view a, std::string_view b) {
  return order == KeyOrder::kBytewise ? a < b : b < a;
}

}  // namespace cairn
