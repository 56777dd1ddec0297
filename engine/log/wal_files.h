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

// A place in a database's write-ahead log, between two records. The default is nowhere.
struct LogPosition {
  uint64_t log_number = 0;
  WalPlace place;  // in that file

  bool operator==(const LogPosition&) const = default;
};

// A file of a database's write-ahead log.
struct WalFile {
  uint64_t number = 0;
  std::string path;
  std::string archived_path;  // where it may have been moved, or is linked (wal_links.h)
  // The sequence number of its first record; 0 where that was not looked at or cannot be read.
  SequenceNumber start = 0;
  // The lowest known start of the files behind it. A record that reaches it is of a write that
  // failed, and whose sequence numbers were given again.
  SequenceNumber limit = UINT64_MAX;
};

// The directory of the database's log.
std::string LogDirectory(rocksdb::DB* db);
// The number of a log file of this name: 12 of "000012.log".
std::optional<uint64_t> WalNumber(std::string_view name);

// The files of the database's log that are still there, archived and linked ones included, oldest
// first.
//
// Not by DB::GetSortedWalFiles, which leaves out files that are older than an archived one and not
// archived themselves: those that are kept for a prepared transaction.
absl::StatusOr<std::vector<WalFile>> ListWalFiles(rocksdb::DB* db);

// Has what is in the log on the disk: of a database that is open for writing, and, file by file, of
// one that another process may write to and this one reads (`read_only`).
absl::Status SyncLog(rocksdb::DB* db, bool read_only);

// Opens a file for its records from `from` on (WalReader::Open). NotFound where it is gone.
absl::StatusOr<std::unique_ptr<WalReader>> OpenWalFile(rocksdb::DB* db, const WalFile& file,
                                                       WalPlace from = {});

// Finds the starts of files, from the last one back to the first that is found to start before
// `sequence`, and their limits. Returns the index of the file that `sequence` is to be looked for
// in: the first that starts with it, or the last that starts before it; files->size() for none.
// Unimplemented where one of them is compressed.
absl::StatusOr<size_t> FindWalFile(rocksdb::DB* db, SequenceNumber sequence,
                                   std::vector<WalFile>* files);

}  // namespace cairn
