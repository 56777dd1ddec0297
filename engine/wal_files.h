#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/wal_reader.h"
#include "rocksdb/db.h"

namespace cairn {

// A file of a database's write-ahead log that has at least one record.
struct WalFile {
  uint64_t number = 0;
  SequenceNumber start = 0;  // of its first record
  // The lowest start of the files behind it. A record that reaches it is of a write that failed,
  // and whose sequence numbers were given again.
  SequenceNumber limit = 0;
  std::string path;
  std::string archived_path;  // where it may have been moved
};

// The files of the database's log that are still there, archived ones included, oldest first.
absl::StatusOr<std::vector<WalFile>> ListWalFiles(rocksdb::DB* db);

// Opens a file for its records from `offset` on (WalReader::Open). NotFound where it is gone.
absl::StatusOr<std::unique_ptr<WalReader>> OpenWalFile(rocksdb::DB* db, const WalFile& file,
                                                       uint64_t offset = 0);

// Keeps the files of a database from being removed or moved, as long as it lives.
class FileDeletionPause {
 public:
  explicit FileDeletionPause(rocksdb::DB* db) : db_(db), paused_(db->DisableFileDeletions().ok()) {}
  ~FileDeletionPause();
  FileDeletionPause(const FileDeletionPause&) = delete;
  FileDeletionPause& operator=(const FileDeletionPause&) = delete;

 private:
  rocksdb::DB* const db_;
  const bool paused_;  // not where the database is open for reading only, and removes nothing
};

}  // namespace cairn
