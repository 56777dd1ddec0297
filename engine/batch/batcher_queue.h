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

// A lock for sections of a few nanoseconds. A thread that finds it held goes to another shard: the
// holder may have lost its processor for milliseconds.
class BatcherLock {
 public:
  bool TryLock() { return !held_.exchange(true, std::memory_order_acquire); }
  // Retries for about a microsecond.
  bool TryLockAWhile();
  // Yields the processor until the lock is free.
  void Lock();
  void Unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

// The waiting requests of a Batcher, in shards. A thread submits to the shard of the processor that
// it runs on. If that shard is locked or full, the thread uses the next one. So two threads rarely
// meet. A shard stores its queries by operation in blocks, and Take moves whole blocks.
// Thread-safe.
class BatcherQueue {
 public:
  // `default_deadline` applies to requests without a deadline. `now` is called when a block is
  // begun.
  BatcherQueue(PhysicalType kind, size_t shards, size_t max_waiting, BatcherNanos default_deadline,
               std::function<BatcherNanos()> now);
  ~BatcherQueue();

  enum class Outcome : uint8_t { kAccepted, kFull, kClosed, kNoMemory };
  struct Pushed {
    Outcome outcome = Outcome::kAccepted;
    // Whether about as many queries of the operation wait as the best batch has, by the counts that
    // the shards have reported.
    bool fills_batch = false;
    // The request's deadline if it is the earliest of the operation in its shard; otherwise kNever.
    BatcherNanos earliest = kNever;
  };
  Pushed Push(const BatcherRequest& request);

  // Returns whether there may be room for `queries` queries. Also returns true if the queue is
  // closed, since there will never be room then.
  bool HasRoom(size_t queries) const;

  // Properties of the waiting requests, read without a lock. They are exact if no other thread
  // changes the queue.
  size_t waiting() const;
  size_t waiting(Operation operation) const;
  BatcherNanos earliest(Operation operation) const;  // the earliest deadline
  BatcherNanos oldest(Operation operation) const;    // arrival time of the first one

  // Moves whole blocks with equal options to `blocks`, the oldest of each shard first. Stops if the
  // blocks have `enough` queries, no block is left, or the vector's capacity is used up.
  enum class Order : uint8_t {
    kUrgent,  // starts at the shard with the earliest deadline; skips locked shards
    kOldest,  // starts at the shard with the oldest request; waits for locked shards
  };
  void Take(Operation operation, size_t enough, Order order,
            std::vector<std::unique_ptr<BatcherBlock>>* blocks);
  // Takes blocks back to reuse their memory.
  void Return(std::vector<std::unique_ptr<BatcherBlock>>* blocks);

  // Sets the size of a best batch, for Pushed::fills_batch, and the maximum number of queries per
  // block. A single larger request gets a larger block.
  void SetBatchSize(Operation operation, size_t best, size_t block);

  // After it returns, all requests are rejected.
  void Close();

 private:
  struct Lane;
  struct Shard;

  // Adds the request to one shard, which is locked.
  Outcome PushHere(const BatcherRequest& request, Shard* shard, Pushed* pushed);
  std::unique_ptr<BatcherBlock> NewBlock();
  // Moves blocks of one shard, which is locked. Returns the number of queries in them.
  size_t TakeHere(Operation operation, size_t enough, Shard* shard,
                  std::vector<std::unique_ptr<BatcherBlock>>* blocks);

  // Sizes per operation, and the sum of the counts that shards have reported (Lane::reported).
  struct Sizes {
    std::atomic<size_t> best{1};
    std::atomic<size_t> block{1};
    std::atomic<size_t> step{1};  // a shard reports each time that it has this many more
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
