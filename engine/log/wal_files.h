#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/log/wal_reader.h"
#include "rocksdb/db.h"

namespace cairn {

// A position in a database's write-ahead log, between two records. The default is no position.
struct LogPosition {
  uint64_t log_number = 0;
  WalPlace place;  // in that file

  bool operator==(const LogPosition&) const = default;
};

// A file of a database's write-ahead log.
struct WalFile {
  uint64_t number = 0;
  std::string path;
  std::string archived_path;  // its path after archiving, or its link (wal_links.h)
  // The sequence number of its first record; 0 if not yet read or not readable.
  SequenceNumber start = 0;
  // The lowest known start of the files after it. A record with this number or a higher one is from
  // a write that failed and whose sequence numbers were used again.
  SequenceNumber limit = UINT64_MAX;
};

// Returns the directory of the database's log. The second form is for a database that may be
// closed.
std::string LogDirectory(rocksdb::DB* db);
std::string LogDirectory(const rocksdb::DBOptions& options, const std::string& database);
// Returns the number in the name of a log file: 12 for "000012.log".
std::optional<uint64_t> WalNumber(std::string_view name);

// Returns the existing files of the database's log, including archived and linked ones, oldest
// first.
//
// DB::GetSortedWalFiles is not enough. It omits files that are older than an archived one but not
// archived themselves: files that are kept for a prepared transaction.
absl::StatusOr<std::vector<WalFile>> ListWalFiles(rocksdb::DB* db);

// Syncs the log to disk. With `read_only`, the database is open for reading and another process may
// write to it; then the files are synced one by one. Otherwise it must be open for writing.
absl::Status SyncLog(rocksdb::DB* db, bool read_only);

// Opens a file for its records from `from` on (WalReader::Open). Errors: NotFound if it is gone.
absl::StatusOr<std::unique_ptr<WalReader>> OpenWalFile(rocksdb::DB* db, const WalFile& file,
                                                       WalPlace from = {});

// Finds the starts of files, from the last one back to the first one that starts before `sequence`,
// and their limits. Returns the index of the file in which to look for `sequence`: the first one
// that starts with it, or the last one that starts before it; files->size() if there is none.
// Errors: Unimplemented if a file has an unknown compression.
absl::StatusOr<size_t> FindWalFile(rocksdb::DB* db, SequenceNumber sequence,
                                   std::vector<WalFile>* files);

}  // namespace cairn
