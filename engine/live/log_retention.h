#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/time/time.h"
#include "engine/live/file_deletion_pause.h"
#include "rocksdb/db.h"

namespace cairn {

// Keeps files of a database's log from being removed before they have been read, where the database
// does not archive them (DBOptions::WAL_ttl_seconds, WAL_size_limit_MB): by putting off the removal
// of all obsolete files, which is let happen once reading has come to another file of the log, but
// at most once a second, and every half a minute in any case. Thread-safe.
class LogRetention {
 public:
  explicit LogRetention(rocksdb::DB* db);

  // To be called when all that is in the log has been read; `log_number` is of the file where
  // reading stands. A file that is begun and becomes obsolete in the moment of the call is lost, as
  // the next reading finds.
  void Release(uint64_t log_number);

 private:
  rocksdb::DB* const db_;
  const bool needed_;

  std::mutex mutex_;  // guards what follows
  std::unique_ptr<FileDeletionPause> pause_;
  uint64_t log_number_ = 0;  // at the last release
  absl::Time released_at_;
};

}  // namespace cairn
