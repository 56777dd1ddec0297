#include "engine/batch/batcher_core.h"
#include "cairn/batch_index.h"
#include "cairn/query.h"

#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/internal/batcher_clock.h"
#include "cairn/secondary_index.h"
#include "engine/util/cursor_tag.h"
#include "engine/util/scan_cursor.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

constexpr size_t kMaxShards = 64;

// How often a waiting caller yields its processor, while other threads run its batch, before it
// sleeps. A yield takes 0.5 us if no other thread is runnable; a sleep and a wake-up take several
// microseconds (BM Batcher/…/batcher_group).
constexpr int kYields = 16;

// Condition variables overflow on times that are too far in the future.
constexpr BatcherNanos kLongestSleep = 3'600'000'000'000;

// Number of batches whose memory is kept.
constexpr size_t kMaxSpare = 16;

// The delay before a shard is tried again that was locked when its batch was due.
constexpr BatcherNanos kRetry = 50'000;

// Timer slack of a batcher's thread. A timer may fire late by the slack, which is 50 us by default.
constexpr unsigned long kTimerSlack = 1'000;  // ns

// Whether this thread is running a batch of any batcher. Then its receivers run on this thread, and
// the requests that they submit must neither run another batch inside of it nor wait.
thread_local bool runs_batch = false;

size_t Shards(const BatcherOptions& options) {
  if (options.shards > 0) return static_cast<size_t>(options.shards);
  return std::min(kMaxShards, static_cast<size_t>(Topology::Get().hardware_threads()));
}

size_t TimeBucket(BatcherNanos waited) {
  const auto us = static_cast<uint64_t>(std::max<BatcherNanos>(0, waited)) / 1000;
  return std::min<size_t>(static_cast<size_t>(std::bit_width(us)), BatcherStats::kBuckets - 1);
}

// Returns CursorTag::OfIndex; 0 if the spec of the index is not known.
uint64_t IndexChecksum(const BatchIndex& index) {
  const auto* const secondary = dynamic_cast<const SecondaryIndex*>(&index);
  return secondary == nullptr ? 0 : CursorTag::OfIndex(secondary->spec());
}

}  // namespace

uint32_t BatcherRunning::Enter() {
  for (;;) {
    const uint32_t generation = generation_.load();
    running_[generation % 2].fetch_add(1);
    if (generation_.load() == generation) return generation;
    Leave(generation);
  }
}

void BatcherRunning::Leave(uint32_t generation) {
  if (running_[generation % 2].fetch_sub(1) == 1) over_.Notify();
}

void BatcherRunning::Wait() {
  const MutexLock lock(&one_waiter_);
  const uint32_t generation = generation_.fetch_add(1);
  for (;;) {
    const uint64_t ticket = over_.Prepare();
    if (running_[generation % 2].load() == 0) return over_.Cancel();
    over_.Sleep(ticket);
  }
}

struct alignas(128) BatcherCore::Counters {
  std::atomic<uint64_t> batches{0}, queries{0}, late{0}, failed{0};
  std::array<std::atomic<uint64_t>, 4> reasons{};  // by Reason
  std::atomic<BatcherNanos> busy{0};
  std::array<std::atomic<uint64_t>, BatcherStats::kBuckets> waiting_times{};
};

BatcherCore::BatcherCore(const BatchIndex* index, const BatcherOptions& options)
    : index_(index),
      options_(options),
      kind_(index->kind()),
      index_checksum_(IndexChecksum(*index)),
      queue_(kind_, Shards(options), options.max_waiting,
             absl::ToInt64Nanoseconds(options.default_deadline), [this] { return Now(); }),
      schedule_(index, options, &queue_),
      counters_(new Counters[kIndexOperations]) {
  spare_.reserve(kMaxSpare);
}

BatcherCore::~BatcherCore() {
  Shutdown();
}

void BatcherCore::StartThreads() {
  const MutexLock lock(&shutdown_);
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { ThreadMain(); });
}

BatcherNanos BatcherCore::Now() const {
  if (options_.clock != nullptr) return absl::ToUnixNanos(options_.clock->Now());
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

BatcherNanos BatcherCore::NanosOf(absl::Time deadline) const {
  const absl::Time now = options_.clock != nullptr ? options_.clock->Now() : absl::Now();
  const int64_t nanos = absl::ToInt64Nanoseconds(absl::Nanoseconds(Now()) + (deadline - now));
  return std::clamp<BatcherNanos>(nanos, 0, kNever - 1);
}

absl::Time BatcherCore::TimeOf(BatcherNanos nanos) const {
  if (nanos == kNever) return absl::InfiniteFuture();
  const absl::Time now = options_.clock != nullptr ? options_.clock->Now() : absl::Now();
  return now + absl::Nanoseconds(nanos - Now());
}

bool BatcherCore::MayHelp() const {
  return options_.callers == BatcherOptions::Callers::kHelp && !runs_batch;
}

// ---- Requests ----

absl::Status BatcherCore::Check(const BatcherRequest& request) const {
  if (request.answer->receiver.receive == nullptr) {
    return absl::InvalidArgumentError("expected a request with a receiver, got none");
  }
  if (request.size() > options_.max_waiting) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a request of %d queries is larger than max_waiting, which is %d",
                        request.size(), options_.max_waiting));
  }
  if (request.keys != nullptr) {
    return request.keys->kind() == kind_
               ? absl::OkStatus()
               : CheckQueries(kind_, Batch{request.operation, *request.keys});
  }
  const RangeBatch& ranges = *request.ranges;
  RETURN_IF_ERROR(CheckQueries(kind_, Batch{request.operation, {}, ranges}));
  if (!ranges.after.empty() && ranges.after.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected no cursors or one per range, got %d for %d ranges",
                        ranges.after.size(), ranges.size()));
  }
  // An invalid cursor must not fail the other requests of the batch.
  const Order order = request.options == nullptr ? Order::kAscending : request.options->order;
  for (size_t i = 0; i < ranges.after.size(); ++i) {
    const std::string_view after = ranges.after[i];
    if (after.empty()) continue;
    if (index_checksum_ == 0) {  // only the index knows the tag
      const size_t tag_bytes = std::min(after.size(), CursorTag::kBytes);
      RETURN_IF_ERROR(ScanCursor::Decode(after.substr(tag_bytes), ranges.kind()).status());
      continue;
    }
    const CursorTag tag = CursorTag::OfScan(index_checksum_, ranges, i, order);
    RETURN_IF_ERROR(ScanCursor::DecodeFor(tag, ranges, i).status());
  }
  return absl::OkStatus();
}

absl::Status BatcherCore::Submit(const BatcherRequest& given) {
  RETURN_IF_ERROR(Check(given));
  if (given.size() == 0) return absl::OkStatus();
  BatcherRequest request = given;
  if (given.answer->deadline != Batcher::kNoDeadline) {
    request.deadline = NanosOf(given.answer->deadline);
  }
  for (;;) {
    const BatcherQueue::Pushed pushed = queue_.Push(request);
    switch (pushed.outcome) {
      case BatcherQueue::Outcome::kAccepted:
        if (pushed.fills_batch || pushed.earliest != kNever) Urge(request.operation, pushed);
        return absl::OkStatus();
      case BatcherQueue::Outcome::kClosed:
        return absl::FailedPreconditionError("the batcher has been shut down");
      case BatcherQueue::Outcome::kNoMemory:
        return absl::ResourceExhaustedError("no memory to store the request");
      case BatcherQueue::Outcome::kFull:
        RETURN_IF_ERROR(MakeRoom(request));
        break;
    }
  }
}

absl::Status BatcherCore::MakeRoom(const BatcherRequest& request) {
  if (options_.when_full == BatcherOptions::WhenFull::kReject || runs_batch) {
    rejected_.fetch_add(request.size(), std::memory_order_relaxed);
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the batcher is full: cannot add %d queries, since %d of at most %d are waiting",
        request.size(), queue_.waiting(), options_.max_waiting));
  }
  if (MayHelp()) {
    if (!RunAny(Reason::kIdle)) std::this_thread::yield();
    return absl::OkStatus();
  }
  const uint64_t ticket = room_.Prepare();
  if (queue_.HasRoom(request.size())) {
    room_.Cancel();
  } else {
    work_.Notify();
    room_.Sleep(ticket);
  }
  return absl::OkStatus();
}

void BatcherCore::Urge(Operation operation, const BatcherQueue::Pushed& pushed) {
  if (pushed.fills_batch && !MayHelp()) return work_.Notify();
  BatcherNanos look = kNever;
  if (pushed.earliest != kNever) {
    look = schedule_.LookAt(operation, pushed.earliest);
    if (look >= next_look_.load()) look = kNever;  // a thread will look earlier
  }
  if (pushed.fills_batch || (look != kNever && MayHelp() && look <= Now())) {
    BatcherNanos next;
    RunReady(&next);
  }
  // The batch that just ran may have been another one.
  if (look != kNever && queue_.earliest(operation) <= pushed.earliest) work_.Notify();
}

void BatcherCore::Await(std::atomic<int32_t>* balance) {
  int yields = MayHelp() ? 0 : kYields;
  while (balance->load(std::memory_order_acquire) != 0 && yields < kYields) {
    const size_t before = queue_.waiting();
    std::this_thread::yield();
    if (balance->load(std::memory_order_acquire) == 0) return;
    const size_t after = queue_.waiting();
    BatcherNanos next;
    if (after > before) {  // other threads submit, so the batch grows
      RunReady(&next);
    } else if (after > 0) {
      RunAny(Reason::kIdle);
    }
    yields = after > 0 ? 0 : yields + 1;
  }
  for (int32_t b = balance->load(); b != 0; b = balance->load()) balance->wait(b);
}

// ---- Batches ----

bool BatcherCore::RunReady(BatcherNanos* next) {
  const BatcherNanos now = Now();
  const std::optional<Choice> choice = schedule_.Ready(now, next);
  if (!choice.has_value()) return false;
  if (Run(*choice, now, BatcherQueue::Order::kUrgent)) return true;
  *next = now + kRetry;
  return false;
}

bool BatcherCore::RunAny(Reason reason) {
  const BatcherNanos now = Now();
  const std::optional<Choice> choice = schedule_.Any(now, reason);
  return choice.has_value() && Run(*choice, now, BatcherQueue::Order::kUrgent);
}

bool BatcherCore::Run(const Choice& choice, BatcherNanos now, BatcherQueue::Order order) {
  std::unique_ptr<BatcherBatch> batch = TakeSpare();
  if (batch == nullptr) return false;
  const uint32_t generation = running_.Enter();
  queue_.Take(choice.operation, schedule_.best(choice.operation), order, batch->blocks());
  const bool taken = !batch->blocks()->empty();
  if (taken) {
    room_.Notify();
    const bool nested = std::exchange(runs_batch, true);
    const BatcherNanos asked = Now();
    const BatcherNanos left = std::max<BatcherNanos>(0, batch->earliest() - asked);
    const absl::Status status = batch->Ask(*index_, choice.operation, absl::Nanoseconds(left));
    const BatcherNanos answered = Now();
    Count(choice, *batch, !status.ok(), asked, answered);
    schedule_.Charge(choice.operation, std::max<BatcherNanos>(1, answered - asked));
    batch->Deliver(choice.operation, status);
    schedule_.ObserveHandling(asked - now + Now() - answered);
    runs_batch = nested;
    queue_.Return(batch->blocks());
  }
  Spare(std::move(batch));
  running_.Leave(generation);
  return taken;
}

void BatcherCore::Count(const Choice& choice, const BatcherBatch& batch, bool failed,
                        BatcherNanos asked, BatcherNanos answered) {
  Counters& counters = counters_[static_cast<size_t>(choice.operation)];
  const auto add = [](auto& counter, auto n) { counter.fetch_add(n, std::memory_order_relaxed); };
  add(counters.batches, 1);
  add(counters.queries, batch.size());
  if (size_t late = batch.CountLate(answered); late != 0) add(counters.late, late);
  if (failed) add(counters.failed, batch.size());
  add(counters.reasons[static_cast<size_t>(choice.reason)], 1);
  add(counters.busy, answered - asked);
  add(counters.waiting_times[TimeBucket(asked - batch.oldest())], 1);
}

std::unique_ptr<BatcherBatch> BatcherCore::TakeSpare() try {
  std::unique_ptr<BatcherBatch> batch;
  if (spare_lock_.TryLock()) {
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    spare_lock_.Unlock();
  }
  return batch != nullptr ? std::move(batch) : std::make_unique<BatcherBatch>();
} catch (const std::bad_alloc&) {
  return nullptr;  // the waiting requests keep waiting
}

void BatcherCore::Spare(std::unique_ptr<BatcherBatch> batch) {
  if (!spare_lock_.TryLock()) return;
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(batch));
  spare_lock_.Unlock();
}

// ---- The batcher's own threads, and callers that act as one ----

BatcherNanos BatcherCore::RunAllReady() {
  BatcherNanos next;
  while (RunReady(&next)) {
  }
  return next;
}

absl::Time BatcherCore::Poll() {
  return TimeOf(RunAllReady());
}

void BatcherCore::ThreadMain() {
  prctl(PR_SET_TIMERSLACK, kTimerSlack);
  while (!stopping_.load()) {
    next_look_.store(kNever);
    const BatcherNanos next = RunAllReady();
    const uint64_t ticket = work_.Prepare();
    next_look_.store(next);
    // A thread that submitted before the store may not have seen it.
    BatcherNanos now = Now(), recheck;
    if (stopping_.load() || schedule_.Ready(now, &recheck).has_value() || recheck < next) {
      work_.Cancel();
      continue;
    }
    if (work_.Sleep(ticket, std::min(next - now, kLongestSleep))) {
      if (now = Now(); now >= next) schedule_.ObserveLateness(now - next);
    }
  }
}

void BatcherCore::Flush() {
  const BatcherNanos called = Now();
  for (size_t i = 0; i < kIndexOperations; ++i) {
    const Operation operation = static_cast<Operation>(i);
    while (queue_.oldest(operation) <= called) {
      Run({operation, Reason::kFlush, 0}, Now(), BatcherQueue::Order::kOldest);
    }
  }
  running_.Wait();
}

void BatcherCore::Shutdown() {
  const MutexLock lock(&shutdown_);
  queue_.Close();
  room_.Notify();
  Flush();
  stopping_.store(true);
  work_.Notify();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

BatcherStats BatcherCore::Stats() const {
  BatcherStats stats;
  for (size_t i = 0; i < kIndexOperations; ++i) {
    const Counters& from = counters_[i];
    BatcherStats::Requests& to = stats.operations[i];
    to.batches = from.batches;
    to.queries = from.queries;
    to.late = from.late;
    to.failed = from.failed;
    to.full = from.reasons[static_cast<size_t>(Reason::kFull)];
    to.due = from.reasons[static_cast<size_t>(Reason::kDue)];
    to.idle = from.reasons[static_cast<size_t>(Reason::kIdle)];
    to.flushed = from.reasons[static_cast<size_t>(Reason::kFlush)];
    to.busy = absl::Nanoseconds(from.busy.load());
    std::copy(from.waiting_times.begin(), from.waiting_times.end(), to.waiting_times.begin());
  }
  stats.rejected = rejected_;
  stats.waiting = queue_.waiting();
  stats.dispatch_overhead = absl::Nanoseconds(schedule_.overhead());
  return stats;
}

}  // namespace cairn
