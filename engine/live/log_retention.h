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

// Keeps files of a database's log from being removed before they have been read, by putting off the
// removal of all obsolete files.
// - For those who follow, if the database does not archive its log (DBOptions::WAL_ttl_seconds,
//   WAL_size_limit_MB): it is let happen once reading has come to another file of the log, but at
//   most once a second, and every half a minute in any case.
// - For a build, also if the database archives its log, whose archive is not purged meanwhile:
// until
//   the build ends, or more was written than it may keep. Thread-safe.
class LogRetention {
 public:
  // `max_kept` bytes of log are kept for those who follow before it is time to read them.
  LogRetention(rocksdb::DB* db, uint64_t max_kept);

  static constexpr uint64_t kNoBound = 0;
  // While it lives the log is kept as it is now, and what is written to it, up to `max_kept`
  // bytes. It may outlive Close.
  class Hold {
   public:
    Hold(LogRetention* retention, uint64_t max_kept);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // Whether more has been written, and nothing is kept any more.
    bool exceeded() const { return exceeded_.load(std::memory_order_relaxed); }

   private:
    friend class LogRetention;
    LogRetention* const retention_;
    const uint64_t max_kept_;
    uint64_t first_bytes_ = 0;  // of the log, when it began
    std::unique_ptr<FileDeletionPause> pause_;
    std::atomic<bool> exceeded_{false};
  };

  // To be called when the log has been read up to a place in the file `log_number`; 0: nobody reads
  // it. What is written
  // there and behind it stays readable, though RocksDB may remove the files in the moment of the
  // call: they are linked (wal_links.h) until reading has come past them. Only a file that is
  // begun and becomes obsolete between that and RocksDB's own look at its files, some microseconds
  // later, is lost, as the next reading finds.
  void Release(uint64_t log_number);
  // Lets go of what is held beyond its bounds. True where it is time to read the log and to call
  // Release: to be called every second or so.
  bool CheckBounds();

  // Lets go of everything. The database is not used afterwards.
  void Close();

 private:
  uint64_t LogBytes() const;

  rocksdb::DB* const db_;
  const uint64_t max_kept_;

  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Of those who follow; null where the database archives its log.
  std::unique_ptr<FileDeletionPause> pause_ ABSL_GUARDED_BY(mutex_);
  uint64_t log_number_ ABSL_GUARDED_BY(mutex_) = 0;  // at the last release
  absl::Time released_at_ ABSL_GUARDED_BY(mutex_);
  uint64_t released_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the log, then

  std::vector<Hold*> holds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
