#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/batch/batcher_block.h"

namespace cairn {

// A lock for sections of some nanoseconds. Whoever finds it held goes elsewhere: its holder may
// have lost its processor, and be without it for milliseconds.
class BatcherLock {
 public:
  bool TryLock() { return !held_.exchange(true, std::memory_order_acquire); }
  // Tries for about a microsecond.
  bool TryLockAWhile();
  // Gives the processor away until the lock is free.
  void Lock();
  void Unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

// The requests of a Batcher that wait, in shards: a thread submits to the shard of the processor
// that it runs on, or to the next one where that is held or full, so that two threads meet only if
// one is stopped in the middle. A shard keeps its queries by operation in blocks, which are handed
// out as they are. Thread-safe.
class BatcherQueue {
 public:
  // `default_deadline`: of requests without a deadline. `now` is called when a block is begun.
  BatcherQueue(PhysicalType kind, size_t shards, size_t max_waiting, BatcherNanos default_deadline,
               std::function<BatcherNanos()> now);
  ~BatcherQueue();

  enum class Outcome : uint8_t { kAccepted, kFull, kClosed, kNoMemory };
  struct Pushed {
    Outcome outcome = Outcome::kAccepted;
    // The operation has about a best batch of queries, as far as the shards have told each other.
    bool fills_batch = false;
    // The request's deadline if it is its shard's earliest of the operation; else kNever.
    BatcherNanos earliest = kNever;
  };
  Pushed Push(const BatcherRequest& request);

  // Whether there may be room for so many queries, or will never be since the queue is closed.
  bool HasRoom(size_t queries) const;

  // What waits, read without a lock: exact when nobody else is at work.
  size_t waiting() const;
  size_t waiting(Operation operation) const;
  BatcherNanos earliest(Operation operation) const;  // deadline
  BatcherNanos oldest(Operation operation) const;    // when the first of them came

  // Moves whole blocks to `blocks`, the oldest of each shard first, as long as they have equal
  // options, until they have `enough` queries together, none are left, or the vector's capacity is
  // spent.
  enum class Order : uint8_t {
    kUrgent,  // from the shard with the earliest deadline on, passing over shards that are held
    kOldest,  // from the shard with the oldest request on, waiting for those that are held
  };
  void Take(Operation operation, size_t enough, Order order,
            std::vector<std::unique_ptr<BatcherBlock>>* blocks);
  // Blocks come back empty-handed for their memory.
  void Return(std::vector<std::unique_ptr<BatcherBlock>>* blocks);

  // What a best batch is for Pushed::fills_batch, and how many queries a block takes at most,
  // unless a single request has more.
  void SetBatchSize(Operation operation, size_t best, size_t block);

  // Refuses all requests once it has returned.
  void Close();

 private:
  struct Lane;
  struct Shard;

  // Puts the request into one shard, which is locked.
  Outcome PushHere(const BatcherRequest& request, Shard* shard, Pushed* pushed);
  std::unique_ptr<BatcherBlock> NewBlock();
  // Moves blocks of one shard, which is locked; returns how many queries.
  size_t TakeHere(Operation operation, size_t enough, Shard* shard,
                  std::vector<std::unique_ptr<BatcherBlock>>* blocks);

  // Per operation: sizes, and the sum of what shards have reported (Lane::reported).
  struct Sizes {
    std::atomic<size_t> best{1};
    std::atomic<size_t> block{1};
    std::atomic<size_t> step{1};  // a shard reports when it has so many more
  };

  const PhysicalType kind_;
  const size_t shard_count_;
  const size_t shard_capacity_;
  const BatcherNanos response_time_;
  const std::function<BatcherNanos()> now_;
  std::unique_ptr<Shard[]> shards_;
  std::array<Sizes, kIndexOperations> sizes_;
  struct alignas(128) Reported {
    std::atomic<size_t> queries{0};
  };
  std::array<Reported, kIndexOperations> reported_;
  std::atomic<bool> closed_{false};
  BatcherLock spare_lock_;
  std::vector<std::unique_ptr<BatcherBlock>> spare_;
};

}  // namespace cairn
