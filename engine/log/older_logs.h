#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/log/wal_files.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"

namespace cairn {

// Finds the log files of an open database from which RocksDB would recover rows that are in no
// table file, and reads each of them once. Thread-safe.
class OlderLogs {
 public:
  // The database must outlive this.
  explicit OlderLogs(rocksdb::DB* db) : db_(db) {}

  // Returns the ends of those files whose numbers are less than `log_number`, oldest first. The log
  // file `log_number` must have a record, because older files are complete from then on. Files
  // without records are omitted. Files in `known`, an earlier result, are not read; they are
  // returned even if they are lost while the database is open. Errors: those of reading the log.
  absl::StatusOr<std::vector<LogPosition>> Before(uint64_t log_number,
                                                  absl::Span<const LogPosition> known = {});

 private:
  rocksdb::DB* const db_;
  Mutex mutex_;
  std::map<uint64_t, WalPlace> ends_ ABSL_GUARDED_BY(mutex_);  // of complete files, by number
};

// Converts to and from the text in an index's manifest. Errors: DataLoss for any other text.
std::string FormatOlderLogs(absl::Span<const LogPosition> logs);
absl::StatusOr<std::vector<LogPosition>> ParseOlderLogs(std::string_view text);

// Checks that a database, which may be closed, has log files as they were when OlderLogs found
// them, unless it does not need them any more. Each file is read once. Not thread-safe.
class OlderLogCheck {
 public:
  explicit OlderLogCheck(rocksdb::DB* db)
      : OlderLogCheck(db->GetFileSystem(), db->GetName(), LogDirectory(db)) {}
  OlderLogCheck(rocksdb::FileSystem* files, std::string database, std::string log_directory)
      : files_(files), database_(std::move(database)), log_directory_(std::move(log_directory)) {}

  // Checks the log files for a state with this sequence number. A log file that still exists is
  // compared up to its position. A log file that is gone is not needed if its number is below the
  // one in the MANIFEST up to which RocksDB removes log files.
  //
  // Errors: FailedPrecondition, with the reason and the remedy, if rows of the state were lost with
  // a log file; errors of reading the log or the MANIFEST.
  absl::Status HasAll(SequenceNumber sequence, absl::Span<const LogPosition> logs);

 private:
  rocksdb::FileSystem* const files_;
  const std::string database_;
  const std::string log_directory_;
  std::map<uint64_t, WalPlace> same_;  // files that are as they were, or not needed, by number
  uint64_t needed_from_ = 0;           // the number in the MANIFEST, once read
};

}  // namespace cairn
