#pragma once

#include <string_view>

#include "cairn/rocksdb_status.h"
#include "index/machine/guard.h"
#include "rocksdb/status.h"

namespace cairn {

// Like Guarded, for RocksDB's statuses.
template <typename Function>
rocksdb::Status GuardedWrite(std::string_view doing, const Function& function) {
  try {
    return function();
  } catch (...) {
    return ToRocksDb(StatusOfException(doing));
  }
}

}  // namespace cairn
