#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace cairn {

// Calls a function every so often, on a thread of its own, until the end of its life; never, where
// the interval is zero.
class Periodically {
 public:
  Periodically(absl::Duration interval, std::function<void()> function);
  ~Periodically();

 private:
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cairn
