#include "engine/batch/batcher_queue.h"

#include <sched.h>

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

namespace cairn {
namespace {

// Number of pauses that take about a microsecond on current processors.
constexpr int kAWhile = 12;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

size_t IndexOf(Operation operation) {
  return static_cast<size_t>(operation);
}

// For counters that are written under a lock and read without it.
template <typename T>
void Set(std::atomic<T>* counter, T value) {
  counter->store(value, std::memory_order_relaxed);
}
template <typename T>
T Get(const std::atomic<T>& counter) {
  return counter.load(std::memory_order_relaxed);
}

}  // namespace

bool BatcherLock::TryLockAWhile() {
  for (int i = 0; i < kAWhile; ++i) {
    if (TryLock()) return true;
    Pause();
  }
  return TryLock();
}

void BatcherLock::Lock() {
  while (!TryLockAWhile()) std::this_thread::yield();
}

struct BatcherQueue::Lane {
  std::vector<std::unique_ptr<BatcherBlock>> blocks;  // requests are appended to the last one
  size_t reported = 0;
  std::atomic<size_t> waiting{0};
  std::atomic<BatcherNanos> earliest{kNever};
  std::atomic<BatcherNanos> oldest{kNever};
};

struct alignas(128) BatcherQueue::Shard {
  BatcherLock lock;  // guards the other members; atomics are read without it
  bool closed = false;
  std::atomic<size_t> waiting{0};
  std::array<Lane, kIndexOperations> lanes;
};

BatcherQueue::BatcherQueue(PhysicalType kind, size_t shards, size_t max_waiting,
                           BatcherNanos default_deadline, std::function<BatcherNanos()> now)
    : kind_(kind),
      shard_count_(std::max<size_t>(1, std::min(shards, max_waiting))),
      shard_capacity_(max_waiting / shard_count_),
      response_time_(default_deadline),
      now_(std::move(now)),
      shards_(new Shard[shard_count_]) {}

BatcherQueue::~BatcherQueue() = default;

BatcherQueue::Pushed BatcherQueue::Push(const BatcherRequest& request) {
  const int processor = sched_getcpu();
  const size_t home = processor < 0 ? 0 : static_cast<size_t>(processor) % shard_count_;
  Pushed pushed;
  bool all_full = true;
  size_t at = home;
  for (int round = 0;;) {
    Shard& shard = shards_[at];
    if (shard.lock.TryLock()) {
      pushed.outcome = PushHere(request, &shard, &pushed);
      shard.lock.Unlock();
      if (pushed.outcome != Outcome::kFull) return pushed;
    } else {
      all_full = false;
    }
    if (++at == shard_count_) at = 0;
    if (at != home) continue;
    if (all_full) return pushed;
    all_full = true;
    if (++round > kAWhile) std::this_thread::yield();
  }
}

BatcherQueue::Outcome BatcherQueue::PushHere(const BatcherRequest& request, Shard* shard,
                                             Pushed* pushed) {
  if (shard->closed) return Outcome::kClosed;
  const size_t queries = request.size();
  const size_t waiting = Get(shard->waiting);
  if (waiting != 0 && waiting + queries > shard_capacity_) return Outcome::kFull;

  Lane& lane = shard->lanes[IndexOf(request.operation)];
  const Sizes& sizes = sizes_[IndexOf(request.operation)];
  BatcherNanos deadline;
  try {
    if (lane.blocks.empty() || !lane.blocks.back()->Fits(request) ||
        lane.blocks.back()->size() + queries > Get(sizes.block)) {
      lane.blocks.push_back(NewBlock());
      lane.blocks.back()->Open(request, kind_, now_());
      if (lane.blocks.size() == 1) Set(&lane.oldest, lane.blocks.back()->opened());
    }
    BatcherBlock& block = *lane.blocks.back();
    deadline = request.deadline != kNever ? request.deadline : block.opened() + response_time_;
    block.Append(request, deadline);
  } catch (const std::bad_alloc&) {
    return Outcome::kNoMemory;
  }

  Set(&shard->waiting, waiting + queries);
  const size_t lane_waiting = Get(lane.waiting) + queries;
  Set(&lane.waiting, lane_waiting);
  if (deadline < Get(lane.earliest)) {
    // Sequentially consistent. So either a thread that announces how long it will sleep sees this
    // deadline, or the request's thread sees the announcement (BatcherCore::Urge).
    lane.earliest.store(deadline);
    pushed->earliest = deadline;
  }
  if (lane_waiting - lane.reported >= Get(sizes.step)) {
    const size_t more = lane_waiting - lane.reported;
    lane.reported = lane_waiting;
    std::atomic<size_t>& reported = reported_[IndexOf(request.operation)].queries;
    pushed->fills_batch = reported.fetch_add(more) + more >= Get(sizes.best);
  }
  return Outcome::kAccepted;
}

std::unique_ptr<BatcherBlock> BatcherQueue::NewBlock() {
  std::unique_ptr<BatcherBlock> block;
  if (spare_lock_.TryLock()) {
    if (!spare_.empty()) {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    spare_lock_.Unlock();
  }
  return block != nullptr ? std::move(block) : std::make_unique<BatcherBlock>();
}

void BatcherQueue::Return(std::vector<std::unique_ptr<BatcherBlock>>* blocks) {
  const size_t most = 2 * shard_count_;
  if (spare_lock_.TryLock()) {
    while (!blocks->empty() && spare_.size() < most) {
      spare_.push_back(std::move(blocks->back()));
      blocks->pop_back();
    }
    spare_lock_.Unlock();
  }
  blocks->clear();
}

size_t BatcherQueue::waiting() const {
  size_t sum = 0;
  for (size_t i = 0; i < shard_count_; ++i) sum += Get(shards_[i].waiting);
  return sum;
}

bool BatcherQueue::HasRoom(size_t queries) const {
  if (closed_.load()) return true;
  for (size_t i = 0; i < shard_count_; ++i) {
    const size_t waiting = shards_[i].waiting.load();
    if (waiting == 0 || waiting + queries <= shard_capacity_) return true;
  }
  return false;
}

size_t BatcherQueue::waiting(Operation operation) const {
  size_t sum = 0;
  // A thread that is about to sleep misses the notification of a full batch. It sees the batch
  // here.
  reported_[IndexOf(operation)].queries.load();
  for (size_t i = 0; i < shard_count_; ++i) {
    sum += Get(shards_[i].lanes[IndexOf(operation)].waiting);
  }
  return sum;
}

BatcherNanos BatcherQueue::earliest(Operation operation) const {
  BatcherNanos earliest = kNever;
  for (size_t i = 0; i < shard_count_; ++i) {
    earliest = std::min(earliest, shards_[i].lanes[IndexOf(operation)].earliest.load());
  }
  return earliest;
}

BatcherNanos BatcherQueue::oldest(Operation operation) const {
  BatcherNanos oldest = kNever;
  for (size_t i = 0; i < shard_count_; ++i) {
    oldest = std::min(oldest, Get(shards_[i].lanes[IndexOf(operation)].oldest));
  }
  return oldest;
}

void BatcherQueue::Take(Operation operation, size_t enough, Order order,
                        std::vector<std::unique_ptr<BatcherBlock>>* blocks) {
  size_t first = 0;
  BatcherNanos least = kNever;
  for (size_t i = 0; i < shard_count_; ++i) {
    const Lane& lane = shards_[i].lanes[IndexOf(operation)];
    const BatcherNanos here = Get(order == Order::kUrgent ? lane.earliest : lane.oldest);
    if (here < least) least = here, first = i;
  }
  size_t taken = 0;
  for (size_t i = 0; i < shard_count_ && taken < enough; ++i) {
    Shard& shard = shards_[(first + i) % shard_count_];
    if (Get(shard.lanes[IndexOf(operation)].oldest) == kNever) continue;
    if (order == Order::kOldest) {
      shard.lock.Lock();
    } else if (!shard.lock.TryLockAWhile()) {
      continue;
    }
    taken += TakeHere(operation, enough - taken, &shard, blocks);
    shard.lock.Unlock();
  }
}

size_t BatcherQueue::TakeHere(Operation operation, size_t enough, Shard* shard,
                              std::vector<std::unique_ptr<BatcherBlock>>* blocks) {
  Lane& lane = shard->lanes[IndexOf(operation)];
  size_t taken = 0, count = 0;
  while (count < lane.blocks.size() && taken < enough && blocks->size() < blocks->capacity()) {
    const BatcherBlock& block = *lane.blocks[count];
    if (!blocks->empty() && !SameAnswers(blocks->front()->options(), block.options())) break;
    taken += block.size();
    blocks->push_back(std::move(lane.blocks[count++]));
  }
  lane.blocks.erase(lane.blocks.begin(), lane.blocks.begin() + static_cast<ptrdiff_t>(count));

  BatcherNanos earliest = kNever;
  for (const auto& block : lane.blocks) earliest = std::min(earliest, block->earliest());
  Set(&lane.earliest, earliest);
  Set(&lane.oldest, lane.blocks.empty() ? kNever : lane.blocks.front()->opened());
  const size_t left = Get(lane.waiting) - taken;
  Set(&lane.waiting, left);
  // Sequentially consistent. So a thread that sleeps until there is room either sees this or is
  // notified.
  shard->waiting.store(Get(shard->waiting) - taken);
  if (lane.reported > left) {
    reported_[IndexOf(operation)].queries.fetch_sub(lane.reported - left);
    lane.reported = left;
  }
  return taken;
}

void BatcherQueue::SetBatchSize(Operation operation, size_t best, size_t block) {
  Sizes& sizes = sizes_[IndexOf(operation)];
  Set(&sizes.best, best);
  Set(&sizes.block, block);
  // The step bounds the queries that shards have not reported to an eighth of a batch.
  Set(&sizes.step, std::clamp<size_t>(best / (8 * shard_count_), 1, 64));
}

void BatcherQueue::Close() {
  closed_.store(true);
  for (size_t i = 0; i < shard_count_; ++i) {
    shards_[i].lock.Lock();
    shards_[i].closed = true;
    shards_[i].lock.Unlock();
  }
}

}  // namespace cairn
