#pragma once

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "index/machine/mutex.h"

namespace cairn {

// Calls a function every so often, on a thread of its own, until the end of its life; never, where
// the interval is zero.
class Periodically {
 public:
  Periodically(absl::Duration interval, std::function<void()> function);
  ~Periodically();

 private:
  Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace cairn
