#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

class BatcherClock;
class BatcherCore;
class BatchIndex;

// Options of Batcher::Make.
struct BatcherOptions {
  // The time within which requests without a deadline of their own are executed.
  absl::Duration default_deadline = absl::Milliseconds(1);

  // `max_waiting`: the maximum number of queries, of all threads, that wait at a time. `when_full`:
  // the treatment of a request for which there is no room.
  enum class WhenFull : uint8_t {
    kBlock,  // the calling thread executes other requests (Callers::kHelp) or sleeps until there is
             // room
    kReject,  // returns ResourceExhausted
  };
  size_t max_waiting = 1 << 17;
  WhenFull when_full = WhenFull::kBlock;

  // Which threads execute batches, and thus call receivers, in addition to the batcher's own
  // threads.
  enum class Callers : uint8_t {
    kHelp,   // calling threads: if a request completes a batch, is too late to wait or finds no
             // room, and in Group::Wait. No other thread has to wake up for such a batch.
    kNever,  // no other threads
  };
  Callers callers = Callers::kHelp;
  // The number of the batcher's own threads, which execute batches in time for their deadlines. 0:
  // none; the program calls Poll.
  int threads = 1;

  // The number of queries at which a batch is executed without waiting for a deadline, unless it
  // would take longer than max_batch_time. 0: the smallest batch with at least 90% of the maximum
  // throughput, according to the cost model of the index and the overhead of the batcher; 1,024 if
  // there is no model.
  size_t best_batch = 0;
  // The maximum predicted time of a batch of more than one query. It limits how long another
  // operation waits for its turn. 0: a sixteenth of default_deadline.
  absl::Duration max_batch_time = absl::ZeroDuration();

  // The number of submission queues. More queues reduce contention between threads. Not related to
  // shards of an index. 0: one per hardware thread, at most 64.
  int shards = 0;
  // For tests that control the time (internal/batcher_clock.h): requires `threads` to be 0, and
  // must outlive the batcher. Null: the time of the machine.
  const BatcherClock* clock = nullptr;
};

// Counters of a Batcher since its creation.
struct BatcherStats {
  // Bucket b counts batches whose oldest query waited less than 2^b microseconds and that belong to
  // no lower bucket. The last bucket also counts all longer waits.
  static constexpr size_t kBuckets = RouteStats::kBuckets;

  // Counters of one operation.
  struct Requests {  // of one operation
    uint64_t batches = 0;
    uint64_t queries = 0;  // in these batches
    uint64_t late = 0;     // executed after their deadline
    uint64_t failed = 0;   // that returned an error
    // Batches by the reason for executing them: best size; a deadline; a caller that waited while
    // no other thread submitted requests, or that found no room; Flush or Shutdown.
    uint64_t full = 0;
    uint64_t due = 0;
    uint64_t idle = 0;
    uint64_t flushed = 0;
    absl::Duration busy;  // sum of the times in the index
    std::array<uint64_t, kBuckets> waiting_times = {};

    double mean_batch() const {
      return batches == 0 ? 0 : static_cast<double>(queries) / static_cast<double>(batches);
    }
  };
  std::array<Requests, kIndexOperations> operations;  // indexed by Operation
  uint64_t rejected = 0;                              // queries rejected because there was no room
  size_t waiting = 0;                                 // queries that wait now
  // The measured overhead of a batch in addition to its time in the index, as 99th percentile: late
  // wakeup of the batcher's thread, gathering keys, and distributing results. Batches are executed
  // earlier by this time, or by half of default_deadline if that is less.
  absl::Duration dispatch_overhead;
};

// Combines small requests of many threads into batches, because an index is fastest in batches. A
// request is a single key or a small batch, with a deadline. A Batcher collects requests and
// executes many at a time on a SecondaryIndex. It executes a batch when the batch has the best size
// according to the cost model of the index. It also does so at the earliest deadline, less the
// predicted time of the batch and the measured overhead of the batcher.
// QueryOptions::latency_target of the batch is the remaining time until that deadline. The router
// of the index chooses a strategy by the size of the batch (Kim et al., FAST, SIGMOD 2010, section
// 7).
//
// There are three ways to get results. Futures are the simplest; a request costs one or two
// microseconds, most of it the sleep of the calling thread. A Group is for a thread that submits
// many requests one at a time and waits for them once. A Receiver is a function that is called with
// the results; it costs nanoseconds.
//
// Every accepted request gets exactly one result or error. A request that is not accepted has no
// effect except its status: InvalidArgument for a key of the wrong type, an operation that does not
// support such queries, or more queries than max_waiting; ResourceExhausted if there is no room or
// memory runs out; FailedPrecondition after Shutdown. If the index returns an error, each request
// of the batch gets it. Requests of one operation share batches, scans only if their options are
// equal. Operations take turns according to the time that they use, so that none starves.
//
// On a sharded index, only Contains and Count are supported.
//
// Thread-safe.
class Batcher {
 public:
  // The deadline of a request without a deadline of its own: BatcherOptions::default_deadline after
  // the request. Setting the system time does not affect requests that already wait.
  static constexpr absl::Time kNoDeadline = absl::InfiniteFuture();

  // One physical key, not owned. Conversions are implicit, so that calls can use a number or a
  // string. Requests copy the key.
  class Key {
   public:
    Key(uint32_t key) : kind_(PhysicalType::kU32), u32_(key) {}                       // NOLINT
    Key(uint64_t key) : kind_(PhysicalType::kU64), u64_(key) {}                       // NOLINT
    Key(std::string_view key) : kind_(PhysicalType::kBytes), u64_(0), bytes_(key) {}  // NOLINT
    Key(const std::string& key) : Key(std::string_view(key)) {}                       // NOLINT
    Key(const char* key) : Key(std::string_view(key)) {}                              // NOLINT
    // Returns a batch of this key, valid as long as this object.
    KeyBatch batch() const;

   private:
    PhysicalType kind_;
    union {
      uint32_t u32_;
      uint64_t u64_;
    };
    std::string_view bytes_;
  };

  // The result of a scan of one range.
  struct Entries {
    std::vector<RowId> row_ids;
    EncodedKeys keys;    // with QueryOptions::with_keys
    std::string cursor;  // see FindResult::cursors
  };

  // The result type of one query of an operation.
  template <Operation kOperation>
  using AnswerOf =
      std::tuple_element_t<static_cast<size_t>(kOperation),
                           std::tuple<RowId, bool, std::vector<RowId>, uint64_t, Entries>>;

  // Creates a batcher. The index must outlive it. Errors: InvalidArgument for invalid options;
  // ResourceExhausted if threads cannot be started.
  static absl::StatusOr<std::unique_ptr<Batcher>> Make(const BatchIndex* index,
                                                       const BatcherOptions& options = {});
  // Calls Shutdown.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // ---- Futures. If a request is not accepted, its future contains the status at once. ----

  // The result of a request, or its error.
  template <typename Answer>
  using Future = std::future<absl::StatusOr<Answer>>;

  // Returns the lowest row of the key, or kNoRow.
  Future<RowId> FindFirst(const Key& key, absl::Time deadline = kNoDeadline);
  Future<bool> Contains(const Key& key, absl::Time deadline = kNoDeadline);
  // Returns all rows of the key.
  Future<std::vector<RowId>> Find(const Key& key, absl::Time deadline = kNoDeadline);
  // Counts or scans one range; InvalidArgument for any other number of ranges. Scan uses only
  // `order`, `limit` and `with_keys` of `options`; InvalidArgument if `columns` is not empty.
  Future<uint64_t> Count(const RangeBatch& range, absl::Time deadline = kNoDeadline);
  Future<Entries> Scan(const RangeBatch& range, const QueryOptions& options = {},
                       absl::Time deadline = kNoDeadline);

  // ---- Callbacks: called exactly once, with the result or the error. ----
  //
  // If a request is not accepted, the callback is called before the method returns. A callback runs
  // on a thread that executes batches: it should be short, must not throw, and must not wait for
  // other results. Requests that it submits do not wait for room; they are rejected if there is
  // none.

  template <typename Answer>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Answer>) &&>;

  void FindFirst(const Key& key, absl::Time deadline, Callback<RowId> done);
  void Contains(const Key& key, absl::Time deadline, Callback<bool> done);
  void Find(const Key& key, absl::Time deadline, Callback<std::vector<RowId>> done);
  void Count(const RangeBatch& range, absl::Time deadline, Callback<uint64_t> done);
  void Scan(const RangeBatch& range, const QueryOptions& options, absl::Time deadline,
            Callback<Entries> done);

  // ---- Receivers: the basis of the other ways. ----

  // Results of queries that were submitted one after the other for one receiver. Valid during the
  // call.
  struct Answers {
    Operation operation;
    const absl::Status& status;          // of all queries; if not OK, there are no results
    absl::Span<const uint64_t> cookies;  // identify the queries
    absl::Span<const RowId> row_ids;     // FindFirst: one per query
    absl::Span<const bool> found;        // Contains: one per query
    absl::Span<const uint64_t> counts;   // Count: one per query
    const FindResult* matches;  // Find, Scan: the rows of query i are (*matches)[first + i]
    size_t first;               // also the index of its keys and cursors in a scan
  };

  // A function to call with results, and its context. The rules for callbacks apply. Trivially
  // copyable and without allocations. The context must live until all results have been received.
  struct Receiver {
    void (*receive)(void* context, const Answers& answers) = nullptr;
    void* context = nullptr;
  };

  // How to execute a request. Query i of its batch has the cookie `cookie` + i.
  struct Request {
    Receiver receiver;
    uint64_t cookie = 0;
    absl::Time deadline = kNoDeadline;
  };

  // Submits FindFirst, Contains or Find of each key. An empty batch gets no result.
  absl::Status Submit(Operation operation, const KeyBatch& keys, const Request& request);
  // Submits Count or Scan of each range, with the options that Scan uses.
  absl::Status Submit(Operation operation, const RangeBatch& ranges, const QueryOptions& options,
                      const Request& request);

  template <Operation kOperation>
  class Group;

  // ---- ----

  // Executes all waiting requests, and returns when every request accepted before has its result.
  // Must not be called from a receiver or callback.
  void Flush();
  // Flushes and rejects all later requests. Threads that wait for room return.
  void Shutdown();

  // Executes, on the calling thread, the batches that are due. Returns the time at which the next
  // batch is due: absl::InfiniteFuture() if no request waits. For programs with an event loop;
  // several threads may call it at the same time.
  absl::Time Poll();

  // Returns the counters since the batcher was created.
  BatcherStats Stats() const;

 private:
  friend class BatcherGroup;
  explicit Batcher(std::unique_ptr<BatcherCore> core);

  std::unique_ptr<BatcherCore> core_;
};

// The common part of all groups: pending requests, and waiting for their results. Not thread-safe.
class BatcherGroup {
 public:
  BatcherGroup(const BatcherGroup&) = delete;
  BatcherGroup& operator=(const BatcherGroup&) = delete;

  // Adds requests; see Batcher::Submit. The first two overloads are for FindFirst, Contains and
  // Find. The group passes the keys of several calls to the batcher together, with the earliest of
  // their deadlines; if the batcher rejects them, Wait returns the error. The third overload is for
  // Count and Scan. Errors: those of Batcher::Submit; ResourceExhausted if the group would exceed
  // its capacity. On error nothing is added.
  absl::Status Add(const Batcher::Key& key, absl::Time deadline = Batcher::kNoDeadline) {
    return Add(key.batch(), deadline);
  }
  absl::Status Add(const KeyBatch& keys, absl::Time deadline = Batcher::kNoDeadline);
  absl::Status Add(const RangeBatch& ranges, const QueryOptions& options = {},
                   absl::Time deadline = Batcher::kNoDeadline);

  // Waits until all requests have results. Returns OK, or the first error of a request since the
  // last Wait. If no other thread is submitting requests, waiting requests are executed at once,
  // unless Callers::kNever prevents that.
  absl::Status Wait();

  // Returns the number of queries since the last Clear.
  size_t size() const { return size_; }
  // Discards the results. Requires a call of Wait since the last Add.
  void Clear() { size_ = 0; }

 protected:
  BatcherGroup(Batcher* batcher, Operation operation, Batcher::Receiver receiver, size_t capacity);
  ~BatcherGroup();

  // For the receiver: Fail reports an error, NoteAnswers the number of queries with results.
  void Fail(const absl::Status& error);
  void NoteAnswers(size_t queries);

 private:
  absl::Status CheckRoom(size_t queries) const;
  void SubmitKeys();

  Batcher* const batcher_;
  const Operation operation_;
  const Batcher::Receiver receiver_;
  const PhysicalType kind_;
  const size_t capacity_;
  size_t size_ = 0;

  // Keys that have not been passed to the batcher: the last ones of size_.
  EncodedKeys keys_;
  size_t key_count_ = 0;
  absl::Time deadline_ = Batcher::kNoDeadline;

  int32_t submitted_ = 0;  // since the last Wait
  struct Answered;
  const std::unique_ptr<Answered> answered_;  // changed by the threads that provide results
};

// A set of requests of one thread for one operation, with one wait for all of them, and their
// results in the order of submission:
//
//   Batcher::Group<Operation::kFindFirst> group(&batcher, keys.size());
//   for (uint64_t key : keys) group.Add(key).IgnoreError();
//   if (absl::Status s = group.Wait(); !s.ok()) return s;
//   use(group.answers());
//
// Not thread-safe. A receiver must not destroy it.
template <Operation kOperation>
class Batcher::Group : public BatcherGroup {
 public:
  using Answer = AnswerOf<kOperation>;

  // `capacity`: the maximum number of queries between two calls of Clear.
  Group(Batcher* batcher, size_t capacity);
  // Calls Wait.
  ~Group();

  // Returns one result per query, in the order of Add. Valid from Wait until the next Add or Clear.
  absl::Span<const Answer> answers() const {
    return absl::Span<const Answer>(answers_.get(), size());
  }

 private:
  static void Receive(void* context, const Answers& answers);

  std::unique_ptr<Answer[]> answers_;
};

}  // namespace cairn
