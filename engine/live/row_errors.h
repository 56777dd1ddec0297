#pragma once

#include "absl/status/status.h"
#include "rocksdb/db.h"

namespace cairn {

// The error for a message or a log line of a database's live indexes. Without
// DBOptions::allow_data_in_errors, an error of rows (InvalidArgument, AlreadyExists) has no bytes
// of their keys and values, nor words of an application's extractor, which may quote them.
absl::Status ShownError(rocksdb::DB* db, const absl::Status& error);

}  // namespace cairn
