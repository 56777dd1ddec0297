#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "rocksdb/status.h"

namespace cairn {

// A RocksDB status as an absl one of the nearest code: Corruption is DataLoss, NotFound stays,
// IOError and what has no counterpart are Internal. `doing` says what failed, and goes before the
// message: "cannot open '/data/db'".
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing) noexcept;

// The other way round. AlreadyExists is InvalidArgument, as RocksDB has no such code. Where there
// is no memory for the message, MemoryLimit.
rocksdb::Status ToRocksDb(const absl::Status& status) noexcept;

}  // namespace cairn
