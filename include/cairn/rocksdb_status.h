#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "rocksdb/status.h"

namespace cairn {

// Converts a RocksDB status to the nearest absl::Status. `doing` is what failed, for example
// "cannot open '/data/db'"; it precedes the message of `status`. Thread-safe.
//
//   OK                              OK
//   NotFound, IOError PathNotFound  NotFound
//   Corruption                      DataLoss
//   NotSupported                    Unimplemented
//   InvalidArgument                 InvalidArgument
//   Busy, TryAgain                  Unavailable
//   TimedOut                        DeadlineExceeded
//   NoSpace, MemoryLimit            ResourceExhausted
//   any other                       Internal
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing) noexcept;

// Converts an absl::Status to the nearest RocksDB status. If memory for the message runs out,
// returns Aborted with subcode MemoryLimit. Thread-safe.
//
//   OK                              OK
//   NotFound                        NotFound
//   DataLoss                        Corruption
//   Unimplemented                   NotSupported
//   InvalidArgument, AlreadyExists  InvalidArgument
//   Unavailable                     Busy
//   DeadlineExceeded                TimedOut
//   ResourceExhausted, Internal     IOError
//   any other                       Aborted
rocksdb::Status ToRocksDb(const absl::Status& status) noexcept;

}  // namespace cairn
