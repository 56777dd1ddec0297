#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace cairn {

// The order of a column family's primary keys, which its comparator defines. Indexes of both orders
// give the same answers: an index numbers rows in the order of bytes.
enum class KeyOrder : uint8_t {
  kBytewise,         // as rocksdb::BytewiseComparator
  kReverseBytewise,  // as rocksdb::ReverseBytewiseComparator
};

// Declares the order of all comparators of this name, for the life of the process. Column families
// with such a comparator can then be indexed, and directories can be opened although the comparator
// is not compiled in. No declaration is needed for RocksDB's own comparators, for those of MyRocks
// and MariaDB ("RocksDB_SE_v3.10", "rev:RocksDB_SE_v3.10"), and for a wrapper whose
// GetRootComparator() returns one of RocksDB's. User-defined timestamps cannot be declared.
//
// The caller states a fact that Cairn cannot prove. A build fails if the rows that it reads are not
// in the declared order. After a wrong declaration without such rows, results are unspecified.
//
// Call it before a database or a directory is opened. Errors: InvalidArgument if the name is empty;
// AlreadyExists if the name has the other order. Thread-safe.
absl::Status DeclareComparator(std::string name, KeyOrder order);

}  // namespace cairn
