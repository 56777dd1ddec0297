#pragma once

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "index/machine/mutex.h"

namespace cairn {

// Calls a function at a fixed interval, on its own thread, until it is destroyed. Never calls it if
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
