#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "engine/batch/batcher_block.h"
#include "index/machine/mutex.h"

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
    MutexLock lock(&mutex_);
    bool in_time = true;
    if (time == kNever) {
      while (generation_.load() == ticket) wake_.Wait(&lock);
    } else {
      const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(time);
      while (generation_.load() == ticket && in_time) in_time = wake_.WaitUntil(&lock, end);
      in_time = generation_.load() != ticket;
    }
    sleepers_.fetch_sub(1);
    return !in_time;
  }

  // Wakes all sleepers.
  void Notify() {
    if (sleepers_.load() == 0) return;
    {
      const MutexLock lock(&mutex_);
      generation_.fetch_add(1);
    }
    wake_.NotifyAll();
  }

 private:
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<uint64_t> generation_{0};
  Mutex mutex_;
  CondVar wake_;
};

}  // namespace cairn
