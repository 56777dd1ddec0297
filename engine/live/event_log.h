#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "cairn/indexed_db.h"
#include "index/machine/mutex.h"
#include "rocksdb/env.h"

namespace cairn {

// Returns the error for a message or a log line of a database's live indexes. Without
// DBOptions::allow_data_in_errors, errors about rows (InvalidArgument, AlreadyExists) have no bytes
// of keys and values. They also omit messages of an application's extractor, which may quote such
// bytes.
absl::Status ShownError(rocksdb::DB* db, const absl::Status& error);

// Reports events of a database's indexes: state changes with their reasons, finished background
// work, and waiting writers. Events go to the database's info log (DBOptions::info_log), if it has
// one, in lines that begin with "[cairn]". They also go to listeners, which one thread calls.
// Thread-safe. Throws nothing; if memory runs out, an event is not reported.
class EventLog {
 public:
  using Listeners = std::vector<std::shared_ptr<IndexListener>>;

  explicit EventLog(std::shared_ptr<rocksdb::Logger> log, Listeners listeners = {});
  ~EventLog() { Stop(/*deliver=*/false); }

  void Write(rocksdb::InfoLogLevel level, const std::string& line) const;
  bool has_listeners() const { return !listeners_.empty(); }
  // Notifies the listeners. It locks a mutex that is only held briefly.
  void Report(IndexStateChange change) {
    Enqueue(&IndexListener::OnStateChanged, std::move(change));
  }
  void ReportFlush(IndexWork work) { Enqueue(&IndexListener::OnFlushCompleted, std::move(work)); }
  void ReportCompaction(IndexWork work) {
    Enqueue(&IndexListener::OnCompactionCompleted, std::move(work));
  }

  // Counts a write that waited for the indexes. Every ten seconds, a log line sums these up.
  void NoteWait(absl::Duration waited);
  // Counts a refused write that must not wait.
  void NoteRefusal();
  BacklogStats backlog() const;

  // Returns once no listener is called any more. `deliver`: deliver all earlier events first.
  void Stop(bool deliver);

 private:
  using Call = std::function<void(IndexListener*)>;

  template <typename Event>
  void Enqueue(void (IndexListener::*method)(const Event&), Event event) {
    if (!has_listeners()) return;
    Enqueue([method, event = std::move(event)](IndexListener* to) { (to->*method)(event); });
  }
  void Enqueue(Call call);
  void CallListeners();

  const std::shared_ptr<rocksdb::Logger> log_;
  const Listeners listeners_;

  mutable Mutex mutex_;
  BacklogStats backlog_ ABSL_GUARDED_BY(mutex_);
  BacklogStats logged_ ABSL_GUARDED_BY(mutex_);  // at the last line
  absl::Time next_line_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();

  Mutex calls_mutex_;  // locked after all others
  CondVar calls_changed_;
  std::deque<Call> calls_ ABSL_GUARDED_BY(calls_mutex_);
  bool stopped_ ABSL_GUARDED_BY(calls_mutex_) = false;
  Mutex thread_mutex_;  // held while the thread ends
  std::thread thread_;  // none without listeners
};

}  // namespace cairn
