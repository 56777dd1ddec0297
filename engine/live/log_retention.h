#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "engine/live/file_deletion_pause.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"

namespace cairn {

// Keeps files of a database's log from being removed before they are read, by delaying the removal
// of all obsolete files.
// - For the follower, if the database does not archive its log (DBOptions::WAL_ttl_seconds,
//   WAL_size_limit_MB). Files are removed once reading has reached another file of the log, but at
//   most once per second, and at least every 30 seconds.
// - For a build, even if the database archives its log; the archive is then not purged. This lasts
//   until the build ends, or until more was written than the build may keep.
// Thread-safe.
class LogRetention {
 public:
  // `max_kept` is the number of bytes of log to keep before the follower must read them.
  LogRetention(rocksdb::DB* db, uint64_t max_kept);

  static constexpr uint64_t kNoBound = 0;
  // While a Hold exists, the current log and later writes to it are kept, up to `max_kept` bytes.
  // It may outlive Close.
  class Hold {
   public:
    Hold(LogRetention* retention, uint64_t max_kept);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // Returns whether more was written; then nothing is kept any more.
    bool exceeded() const { return exceeded_.load(std::memory_order_relaxed); }

   private:
    friend class LogRetention;
    LogRetention* const retention_;
    const uint64_t max_kept_;
    uint64_t first_bytes_ = 0;  // of the log, when the hold began
    std::unique_ptr<FileDeletionPause> pause_;
    std::atomic<bool> exceeded_{false};
  };

  // Must be called when the log has been read up to a place in the file `log_number`; 0 if it is
  // not read. Writes at that place and after it remain readable. RocksDB may remove their files
  // during the call, so the files are linked (wal_links.h) until they have been read. There is one
  // exception: a file that is created and becomes obsolete within the microseconds before RocksDB
  // lists its files is lost. The next read detects this.
  void Release(uint64_t log_number);
  // Releases holds that exceed their bounds. Returns true if it is time to read the log and to call
  // Release. Must be called about once per second.
  bool CheckBounds();

  // Releases everything. The database is not used afterwards.
  void Close();

 private:
  uint64_t LogBytes() const;

  rocksdb::DB* const db_;
  const uint64_t max_kept_;

  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // For the follower; null if the database archives its log.
  std::unique_ptr<FileDeletionPause> pause_ ABSL_GUARDED_BY(mutex_);
  uint64_t log_number_ ABSL_GUARDED_BY(mutex_) = 0;  // at the last release
  absl::Time released_at_ ABSL_GUARDED_BY(mutex_);
  uint64_t released_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the log, then

  std::vector<Hold*> holds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
