#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "index/machine/mutex.h"
#include "rocksdb/env.h"

namespace cairn {

// Writes events of a database's indexes to its info log (DBOptions::info_log), if it has one: their
// states and why, what failed in the background, and writers that waited. Lines begin with
// "[cairn]". Thread-safe; throws nothing.
class EventLog {
 public:
  explicit EventLog(std::shared_ptr<rocksdb::Logger> log) : log_(std::move(log)) {}

  void Write(rocksdb::InfoLogLevel level, const std::string& line) const;
  // A write has waited for the indexes. A line every ten seconds sums that up.
  void NoteWait(absl::Duration waited);

 private:
  const std::shared_ptr<rocksdb::Logger> log_;
  Mutex mutex_;
  absl::Time next_line_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration waited_ ABSL_GUARDED_BY(mutex_);  // since the last line
  uint64_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn
