#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "engine/live/file_deletion_pause.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"

namespace cairn {

// Keeps files of a database's log from being removed before they have been read, where the database
// does not archive them (DBOptions::WAL_ttl_seconds, WAL_size_limit_MB): by putting off the removal
// of all obsolete files. Never for long:
// - for those who follow, it is let happen once reading has come to another file of the log, but at
//   most once a second, and every half a minute in any case;
// - for who builds an index, until the log has grown by `most_kept` bytes.
// Where the database archives its log, that says what is kept, and nothing is put off. Thread-safe.
class LogRetention {
 public:
  LogRetention(rocksdb::DB* db, uint64_t most_kept);

  // While it lives the log is kept as it is now and grows, within the bound. It may outlive Close.
  class Hold {
   public:
    explicit Hold(LogRetention* retention);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    LogRetention* const retention_;
  };

  // To be called when all that is in the log has been read; `log_number` is of the file where
  // reading stands. A file that is begun and becomes obsolete in the moment of the call is lost, as
  // the next reading finds.
  void Release(uint64_t log_number);
  // Lets go of what is held beyond the bound. True where it is time to read the log and to call
  // Release: to be called every second or so.
  bool IsOverdue();

  // Lets go of everything. The database is not used afterwards.
  void Close();

 private:
  uint64_t LogBytes() const;

  rocksdb::DB* const db_;
  const uint64_t most_kept_;

  Mutex mutex_;
  bool needed_ ABSL_GUARDED_BY(mutex_);
  // Of those who follow.
  std::unique_ptr<FileDeletionPause> pause_ ABSL_GUARDED_BY(mutex_);
  uint64_t log_number_ ABSL_GUARDED_BY(mutex_) = 0;  // at the last release
  absl::Time released_at_ ABSL_GUARDED_BY(mutex_);
  uint64_t released_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the log, then

  int holds_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of all Holds, until the bound is passed.
  std::unique_ptr<FileDeletionPause> build_pause_ ABSL_GUARDED_BY(mutex_);
  uint64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the log, when that began
};

}  // namespace cairn
