#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "cairn/batcher.h"
#include "engine/batch/batcher_batch.h"
#include "engine/batch/batcher_block.h"
#include "engine/batch/batcher_queue.h"
#include "engine/batch/batcher_schedule.h"
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

// Tells when everything that is running at some moment is over. Thread-safe.
class BatcherRunning {
 public:
  // Enter returns what Leave has to be given.
  uint32_t Enter();
  void Leave(uint32_t generation);
  // Returns when all those that had entered before the call have left.
  void Wait();

 private:
  Mutex one_waiter_;
  std::atomic<uint32_t> generation_{0};
  std::array<std::atomic<uint32_t>, 2> running_{};  // of the even and the odd generations
  BatcherWakeup over_;
};

// A Batcher's works: takes requests in (BatcherQueue), decides whose turn it is
// (BatcherSchedule), and runs batches (BatcherBatch) on its own threads and on those of callers.
// Thread-safe.
//
// No lock is held while the index is asked or a receiver called, and none that a caller needs
// for long: a thread may lose its processor anywhere, and only the batch that it runs waits for it.
class BatcherCore {
 public:
  BatcherCore(const BatchIndex* index, const BatcherOptions& options);
  ~BatcherCore();

  // Throws std::system_error where a thread cannot be started.
  void StartThreads();

  absl::Status Submit(const BatcherRequest& request);
  // Returns when *balance is zero, which receivers make it. Runs batches meanwhile, if it may.
  void Await(std::atomic<int32_t>* balance);
  void Flush();
  void Shutdown();
  BatcherTime Poll();
  BatcherStats Stats() const;

  PhysicalType kind() const { return kind_; }

 private:
  using Choice = BatcherSchedule::Choice;
  using Reason = BatcherSchedule::Reason;
  struct Counters;

  BatcherNanos Now() const;
  bool MayHelp() const;

  absl::Status Check(const BatcherRequest& request) const;
  // Makes room, or waits for it. An error if there will be none for this thread.
  absl::Status MakeRoom(const BatcherRequest& request);
  // Sees to it that a request which was just accepted is not left waiting too long.
  void Urge(Operation operation, const BatcherQueue::Pushed& pushed);

  // Runs one batch of those that are ready, or of any; false if there was none to take. *next is
  // then when something will be ready.
  bool RunReady(BatcherNanos* next);
  bool RunAny(Reason reason);
  bool Run(const Choice& choice, BatcherNanos now, BatcherQueue::Order order);
  void Count(const Choice& choice, const BatcherBatch& batch, bool failed, BatcherNanos asked,
             BatcherNanos answered);
  std::unique_ptr<BatcherBatch> TakeSpare();
  void Spare(std::unique_ptr<BatcherBatch> batch);

  // Runs what is ready; when something will be.
  BatcherNanos RunAllReady();
  void ThreadMain();

  const BatchIndex* const index_;
  const BatcherOptions options_;
  const PhysicalType kind_;
  BatcherQueue queue_;
  BatcherSchedule schedule_;
  BatcherRunning running_;
  std::unique_ptr<Counters[]> counters_;  // one an operation
  std::atomic<uint64_t> rejected_{0};

  // When the next of the threads will look at the queue by itself; kNever while one is awake, since
  // that may take long.
  std::atomic<BatcherNanos> next_look_{kNever};
  BatcherWakeup work_;  // for the threads
  BatcherWakeup room_;  // for callers that found none
  std::atomic<bool> stopping_{false};
  Mutex shutdown_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(shutdown_);

  BatcherLock spare_lock_;
  std::vector<std::unique_ptr<BatcherBatch>> spare_;  // batches that rest
};

}  // namespace cairn
