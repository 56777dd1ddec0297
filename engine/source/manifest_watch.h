#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rocksdb/db.h"

namespace cairn {

// Calls a function on its own thread after each change of an open database's MANIFEST, which no
// event of RocksDB reports. Waits for events of the local file system (inotify), and takes no
// processor time until there is one. If the database is in another file system, or writes its files
// through memory maps, the function is called periodically.
class ManifestWatch {
 public:
  // The function is called within `latency` after a change, and at most once in that time. After an
  // error or an exception it is called again. The database must outlive this.
  ManifestWatch(rocksdb::DB* db, absl::Duration latency, std::function<absl::Status()> check);
  // Waits for a call that has begun.
  ~ManifestWatch();
  ManifestWatch(const ManifestWatch&) = delete;
  ManifestWatch& operator=(const ManifestWatch&) = delete;

  // Whether the function is called after events only.
  bool waits_for_events() const { return events_ >= 0; }

 private:
  void Run();
  // Watches the current MANIFEST, so that its events arrive at events_. Returns false if that is
  // not possible now.
  bool WatchFile();
  // Waits for an event, or for the end of `timeout`. False if this is being destroyed.
  bool Wait(bool for_events, absl::Duration timeout) const;

  rocksdb::DB* const db_;
  const absl::Duration latency_;
  const std::function<absl::Status()> check_;
  int end_ = -1;     // an eventfd that the destructor makes readable
  int events_ = -1;  // of inotify; -1: not used
  std::string watched_;
  int watch_ = -1;  // of events_, of the file `watched_`
  std::thread thread_;
};

}  // namespace cairn
