#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "engine/batch/batcher_block.h"

namespace cairn {

// Lets threads sleep until something changes that others change without a lock, and costs those
// others one load while nobody sleeps. Who wants to sleep:
//
//   const uint64_t ticket = wakeup.Prepare();
//   if (there is no reason to sleep) wakeup.Cancel(); else wakeup.Sleep(ticket, time);
//
// Who changes something that sleepers look at calls Notify afterwards. The change and the look
// must be sequentially consistent, or under one lock. Thread-safe.
class BatcherWakeup {
 public:
  uint64_t Prepare() {
    sleepers_.fetch_add(1);
    return generation_.load();
  }
  void Cancel() { sleepers_.fetch_sub(1); }

  // Returns after the next Notify since Prepare, or `time` nanoseconds; whether it was the time.
  bool Sleep(uint64_t ticket, BatcherNanos time = kNever) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto notified = [&] { return generation_.load() != ticket; };
    bool in_time = true;
    if (time == kNever) {
      wake_.wait(lock, notified);
    } else {
      in_time = wake_.wait_for(lock, std::chrono::nanoseconds(time), notified);
    }
    sleepers_.fetch_sub(1);
    return !in_time;
  }

  // Wakes all sleepers.
  void Notify() {
    if (sleepers_.load() == 0) return;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      generation_.fetch_add(1);
    }
    wake_.notify_all();
  }

 private:
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<uint64_t> generation_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace cairn
