#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "index/machine/mutex.h"

namespace cairn {

// Counts changes of rows that the log does not contain (ingested files, for example), per column
// family: how many are in progress and how many there were. A build uses this to detect a change
// that overlapped it. Column families are identified by name. Thread-safe.
class PastLogChanges {
 public:
  // A change of some column families' rows, or of any rows of the database.
  struct Scope {
    std::vector<std::string> families;  // distinct
    bool all = false;                   // `families` is then not used

    bool Has(const std::string& family) const {
      if (all) return true;
      for (const std::string& f : families) {
        if (f == family) return true;
      }
      return false;
    }
  };

  // Each Begin has one End. Throws std::bad_alloc; nothing has begun then.
  void Begin(const Scope& scope) {
    const MutexLock lock(&mutex_);
    for (const std::string& family : scope.families) of_.try_emplace(family);
    for (const std::string& family : scope.families) Begin(&of_[family]);
    if (scope.all) Begin(&of_any_);
  }
  void End(const Scope& scope) {
    const MutexLock lock(&mutex_);
    for (const std::string& family : scope.families) End(&of_[family]);
    if (scope.all) End(&of_any_);
  }

  // Counts a change of this column family, by name, that was observed by other means, and returns
  // whether one is in progress. Throws std::bad_alloc; nothing is counted then.
  bool Note(const std::string& family) {
    const MutexLock lock(&mutex_);
    Changes& changes = of_[family];
    changes.count += 2;
    return changes.open > 0;
  }
  // Counts such a change of a column family that cannot be looked up. Takes no memory.
  void NoteAny() {
    const MutexLock lock(&mutex_);
    of_any_.count += 2;
  }

  // Records a failed write whose record may be in the log file `log_number`. It changes no row, but
  // counts as a change of any row.
  void NoteFailedWrite(uint64_t log_number) {
    const MutexLock lock(&mutex_);
    of_any_.count += 2;
    failed_log_ = std::max(failed_log_, log_number);
  }
  // The newest such log file; 0 for none.
  uint64_t failed_log() {
    const MutexLock lock(&mutex_);
    return failed_log_;
  }

  // A state to pass to AnySince.
  uint64_t Count(const std::string& family) {
    const MutexLock lock(&mutex_);
    return of_[family].count + of_any_.count;
  }
  // Returns whether a change of the column family has begun or ended since that state, or is in
  // progress.
  bool AnySince(const std::string& family, uint64_t count) {
    const MutexLock lock(&mutex_);
    const Changes& changes = of_[family];
    return changes.count + of_any_.count != count || changes.open + of_any_.open > 0;
  }

 private:
  struct Changes {
    uint64_t count = 0;  // begins and ends
    uint64_t open = 0;   // begins without an end
  };
  static void Begin(Changes* changes) {
    ++changes->count;
    ++changes->open;
  }
  static void End(Changes* changes) {
    ++changes->count;
    --changes->open;
  }

  Mutex mutex_;
  std::map<std::string, Changes> of_ ABSL_GUARDED_BY(mutex_);
  Changes of_any_ ABSL_GUARDED_BY(mutex_);  // changes of any rows
  uint64_t failed_log_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn
