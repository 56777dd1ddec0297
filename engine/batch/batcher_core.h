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

// Lets threads sleep until some state changes that other threads change without a lock. A change
// costs one extra load while no thread sleeps. A thread that wants to sleep runs:
//
//   const uint64_t ticket = wakeup.Prepare();
//   if (there is no reason to sleep) wakeup.Cancel(); else wakeup.Sleep(ticket, time);
//
// A thread that changes the state calls Notify afterwards. The change and the sleepers' reads of
// the state must be sequentially consistent, or under one lock. Thread-safe.
class BatcherWakeup {
 public:
  uint64_t Prepare() {
    sleepers_.fetch_add(1);
    return generation_.load();
  }
  void Cancel() { sleepers_.fetch_sub(1); }

  // Returns after the first Notify since Prepare, or after `time` nanoseconds. Returns whether the
  // time ran out.
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

// Waits for everything that is running at some moment. Thread-safe.
class BatcherRunning {
 public:
  // Returns the argument for Leave.
  uint32_t Enter();
  void Leave(uint32_t generation);
  // Returns when all threads that had entered before the call have left.
  void Wait();

 private:
  Mutex one_waiter_;
  std::atomic<uint32_t> generation_{0};
  std::array<std::atomic<uint32_t>, 2> running_{};  // by parity of the generation
  BatcherWakeup over_;
};

// The implementation of a Batcher. It accepts requests (BatcherQueue), decides which operation is
// next (BatcherSchedule), and runs batches (BatcherBatch) on its own threads and on those of
// callers. Thread-safe.
// Thread-safe.
//
// It holds no lock while the index executes a batch or a receiver runs, and no lock for long that a
// caller needs. So if a thread loses its processor, only the batch that it runs is delayed.
class BatcherCore {
 public:
  BatcherCore(const BatchIndex* index, const BatcherOptions& options);
  ~BatcherCore();

  // Throws std::system_error if a thread cannot be started.
  void StartThreads();

  absl::Status Submit(const BatcherRequest& request);
  // Returns when *balance is zero; receivers change it. Until then runs batches, if the caller may.
  void Await(std::atomic<int32_t>* balance);
  void Flush();
  void Shutdown();
  absl::Time Poll();
  BatcherStats Stats() const;

  PhysicalType kind() const { return kind_; }

 private:
  using Choice = BatcherSchedule::Choice;
  using Reason = BatcherSchedule::Reason;
  struct Counters;

  BatcherNanos Now() const;
  BatcherNanos NanosOf(absl::Time deadline) const;
  absl::Time TimeOf(BatcherNanos nanos) const;
  bool MayHelp() const;

  absl::Status Check(const BatcherRequest& request) const;
  // Makes room for the request, or waits for it. Error: this thread can get no room.
  absl::Status MakeRoom(const BatcherRequest& request);
  // Ensures that a request that was just accepted does not wait too long.
  void Urge(Operation operation, const BatcherQueue::Pushed& pushed);

  // Run one batch: RunReady of the ready ones, RunAny of all. Return false if there was none. Then
  // RunReady sets *next to the time at which something will be ready.
  bool RunReady(BatcherNanos* next);
  bool RunAny(Reason reason);
  bool Run(const Choice& choice, BatcherNanos now, BatcherQueue::Order order);
  void Count(const Choice& choice, const BatcherBatch& batch, bool failed, BatcherNanos asked,
             BatcherNanos answered);
  std::unique_ptr<BatcherBatch> TakeSpare();
  void Spare(std::unique_ptr<BatcherBatch> batch);

  // Runs all ready batches. Returns the time at which something will be ready.
  BatcherNanos RunAllReady();
  void ThreadMain();

  const BatchIndex* const index_;
  const BatcherOptions options_;
  const PhysicalType kind_;
  const uint64_t index_checksum_;
  BatcherQueue queue_;
  BatcherSchedule schedule_;
  BatcherRunning running_;
  std::unique_ptr<Counters[]> counters_;  // one per operation
  std::atomic<uint64_t> rejected_{0};

  // When the first of the batcher's threads will look at the queue without being notified. kNever
  // while one of them is awake, since that may take long.
  std::atomic<BatcherNanos> next_look_{kNever};
  BatcherWakeup work_;  // wakes the batcher's threads
  BatcherWakeup room_;  // wakes callers that wait for room
  std::atomic<bool> stopping_{false};
  Mutex shutdown_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(shutdown_);

  BatcherLock spare_lock_;
  std::vector<std::unique_ptr<BatcherBatch>> spare_;  // unused batches
};

}  // namespace cairn
