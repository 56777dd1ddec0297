#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "index/machine/mutex.h"

namespace cairn {

// Changes of column families' rows that the log does not tell (ingested files, say): which are
// going on, and how many there were. So whoever builds an index can tell whether there was one
// meanwhile. Column families go by their names. Thread-safe.
class PastLogChanges {
 public:
  void Begin(const std::string& column_family) {
    const MutexLock lock(&mutex_);
    Changes& changes = of_[column_family];
    ++changes.count;
    ++changes.open;
  }
  void End(const std::string& column_family) {
    const MutexLock lock(&mutex_);
    Changes& changes = of_[column_family];
    ++changes.count;
    --changes.open;
  }

  // Whether one is going on.
  bool IsOpen(const std::string& column_family) {
    const MutexLock lock(&mutex_);
    return of_[column_family].open > 0;
  }

  // To be given to AnySince.
  uint64_t Count(const std::string& column_family) {
    const MutexLock lock(&mutex_);
    return of_[column_family].count;
  }
  // Whether a change has begun or ended since then, or is going on.
  bool AnySince(const std::string& column_family, uint64_t count) {
    const MutexLock lock(&mutex_);
    const Changes& changes = of_[column_family];
    return changes.count != count || changes.open > 0;
  }

 private:
  struct Changes {
    uint64_t count = 0;  // that have begun, and that have ended
    uint64_t open = 0;   // that have begun and not ended
  };
  Mutex mutex_;
  std::map<std::string, Changes> of_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
