#pragma once

#include "absl/status/status.h"
#include "rocksdb/db.h"

namespace cairn {

// Returns the error for a message or a log line of a database's live indexes. Without
// DBOptions::allow_data_in_errors, errors about rows (InvalidArgument, AlreadyExists) have no bytes
// of keys and values. They also omit messages of an application's extractor, which may quote such
// bytes.
absl::Status ShownError(rocksdb::DB* db, const absl::Status& error);

}  // namespace cairn
