#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

class BatcherCore;
class BatchIndex;

// The clock that deadlines are read on. A monotonic one: on a clock that is set while requests wait
// they would be late, or hurried, by as much.
using BatcherTime = std::chrono::steady_clock::time_point;

// Where a Batcher reads the time, for tests that decide what time it is. Thread-safe.
class BatcherClock {
 public:
  virtual ~BatcherClock() = default;
  virtual BatcherTime Now() const = 0;
};

struct BatcherOptions {
  // Requests that name no deadline are answered within this time.
  std::chrono::nanoseconds default_deadline = std::chrono::milliseconds(1);

  // Queries that may wait at a time, of all threads; and what becomes of a request for which there
  // is no room.
  enum class WhenFull : uint8_t {
    kBlock,   // its thread helps to answer others (Callers::kHelp) or sleeps until there is room
    kReject,  // ResourceExhausted
  };
  size_t max_waiting = 1 << 17;
  WhenFull when_full = WhenFull::kBlock;

  // Who runs batches, and so calls receivers, beside the batcher's own threads.
  enum class Callers : uint8_t {
    kHelp,   // and the thread whose request completes a batch, comes too late to wait, or finds
             // no room, and one that waits (Group::Wait): no other thread need wake up for them
    kNever,  // nobody
  };
  Callers callers = Callers::kHelp;
  // The batcher's own threads, which see to deadlines. 0: none; someone calls Poll.
  int threads = 1;

  // Queries at which a batch is sent off before any deadline asks for it, unless it would take
  // longer than max_batch_time. 0: what the index's cost model says, the batcher's own cost
  // counted: the least batch whose throughput is nine tenths of the highest; 1,024 where there is
  // no model.
  size_t best_batch = 0;
  // The longest that a batch is predicted to take, unless it is a single query: as long at most
  // another operation waits for its turn. 0: a sixteenth of default_deadline.
  std::chrono::nanoseconds max_batch_time = std::chrono::nanoseconds(0);

  // Places to submit to, so that threads seldom meet. 0: one for each hardware thread, 64 at most.
  int shards = 0;
  // Null: std::chrono::steady_clock. Another one needs `threads` to be 0. Outlives the batcher.
  const BatcherClock* clock = nullptr;
};

// Counters of a Batcher since it was made.
struct BatcherStats {
  // Bucket b counts batches whose oldest query had waited less than 2^b microseconds and that fit
  // no lower bucket; the last one takes all longer ones, too.
  static constexpr size_t kBuckets = RouteStats::kBuckets;

  struct Requests {  // of one operation
    uint64_t batches = 0;
    uint64_t queries = 0;  // in them
    uint64_t late = 0;     // queries answered after their deadline
    uint64_t failed = 0;   // queries answered by an error
    // Batches by what sent them off: best size, a deadline, a caller that waited while nobody else
    // submitted (or found no room), Flush or Shutdown.
    uint64_t full = 0;
    uint64_t due = 0;
    uint64_t idle = 0;
    uint64_t flushed = 0;
    std::chrono::nanoseconds busy{0};  // in the index, added up
    std::array<uint64_t, kBuckets> waiting_times = {};

    double mean_batch() const {
      return batches == 0 ? 0 : static_cast<double>(queries) / static_cast<double>(batches);
    }
  };
  std::array<Requests, kIndexOperations> operations;  // by Operation
  uint64_t rejected = 0;                              // queries refused for want of room
  size_t waiting = 0;                                 // queries that wait now
  // What a batch takes beyond its time in the index, as measured, 99 times of 100: the batcher's
  // thread wakes up late, keys are gathered, answers are handed out. Deadlines are served by so
  // much earlier, or by half of default_deadline if that is less.
  std::chrono::nanoseconds dispatch_overhead{0};
};

// Many threads ask, each for a little; an index answers best in batches. A Batcher takes their
// requests, single keys or small batches, each with a deadline, and puts many at a time to a
// SecondaryIndex: a batch goes when it has reached the size that the index's cost model calls best,
// or when its earliest deadline, less the batch's predicted time and the batcher's own measured
// overhead, has come. What is left until that deadline is the batch's
// QueryOptions::latency_target. The index's router decides by the batch's size whether it is
// searched as it is, through buffers for each part of the key range, or sorted (Kim et al., FAST,
// SIGMOD 2010, section 7). So a request goes through the paper's buffers where that pays, and waits
// in them no longer than its batch runs.
//
// There are three ways to get an answer. Futures are the simplest and cost a microsecond or two,
// most of it the asker's sleep. A Group is for a thread that asks for many things one at a time
// and waits for them once. A Receiver is called with the answers; it costs nanoseconds.
//
// Every request that is accepted is answered exactly once, with an answer or an error; one that is
// not accepted leaves no trace but its status: InvalidArgument (a key of the wrong kind, an
// operation that does not take such queries, more queries than max_waiting), ResourceExhausted (no
// room, no memory), FailedPrecondition (after Shutdown). An error of the index reaches each request
// of its batch. Requests of one operation share batches; scans do if their options are equal.
// Operations take turns by the time that they take, so that a flood of one starves no other.
//
// Thread-safe.
class Batcher {
 public:
  // What a request without a deadline of its own says: BatcherOptions::default_deadline from now
  // on.
  static constexpr BatcherTime kNoDeadline = BatcherTime::max();

  // One physical key, not owned; implicit, so that calls take a number or a string. Requests copy
  // what they are given.
  class Key {
   public:
    Key(uint32_t key) : kind_(PhysicalType::kU32), u32_(key) {}                       // NOLINT
    Key(uint64_t key) : kind_(PhysicalType::kU64), u64_(key) {}                       // NOLINT
    Key(std::string_view key) : kind_(PhysicalType::kBytes), u64_(0), bytes_(key) {}  // NOLINT
    Key(const std::string& key) : Key(std::string_view(key)) {}                       // NOLINT
    Key(const char* key) : Key(std::string_view(key)) {}                              // NOLINT
    // A batch of this key, as long as this object lives.
    KeyBatch batch() const;

   private:
    PhysicalType kind_;
    union {
      uint32_t u32_;
      uint64_t u64_;
    };
    std::string_view bytes_;
  };

  // What a scan finds in one range.
  struct Entries {
    std::vector<RowId> row_ids;
    EncodedKeys keys;    // with QueryOptions::with_keys
    std::string cursor;  // as in FindResult::cursors
  };

  // InvalidArgument for options that make no sense; ResourceExhausted where threads cannot be
  // started. The index must outlive the batcher.
  static absl::StatusOr<std::unique_ptr<Batcher>> Make(const BatchIndex* index,
                                                       const BatcherOptions& options = {});
  // Shutdown().
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // ---- Futures. A request that is not accepted has its status there at once. ----

  template <typename Answer>
  using Future = std::future<absl::StatusOr<Answer>>;

  // The lowest row of the key, or kNoRow.
  Future<RowId> FindFirst(const Key& key, BatcherTime deadline = kNoDeadline);
  Future<bool> Contains(const Key& key, BatcherTime deadline = kNoDeadline);
  // All rows of the key.
  Future<std::vector<RowId>> Find(const Key& key, BatcherTime deadline = kNoDeadline);
  // Of one range; InvalidArgument for more or none. Of the options `order`, `limit` and `with_keys`
  // are heeded, and `columns` are InvalidArgument.
  Future<uint64_t> Count(const RangeBatch& range, BatcherTime deadline = kNoDeadline);
  Future<Entries> Scan(const RangeBatch& range, const QueryOptions& options = {},
                       BatcherTime deadline = kNoDeadline);

  // ---- Callbacks: called once with the answer, or why there is none. ----
  //
  // Also if a request is not accepted, before the method returns. A callback runs on a thread that
  // runs batches: it should be short, must not throw, and must not wait for other answers. What it
  // submits itself is never made to wait for room, but refused.

  template <typename Answer>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Answer>) &&>;

  void FindFirst(const Key& key, BatcherTime deadline, Callback<RowId> done);
  void Contains(const Key& key, BatcherTime deadline, Callback<bool> done);
  void Find(const Key& key, BatcherTime deadline, Callback<std::vector<RowId>> done);
  void Count(const RangeBatch& range, BatcherTime deadline, Callback<uint64_t> done);
  void Scan(const RangeBatch& range, const QueryOptions& options, BatcherTime deadline,
            Callback<Entries> done);

  // ---- Receivers: what the other ways are made of. ----

  // Answers to queries that were submitted one after the other for one receiver. Valid during the
  // call.
  struct Answers {
    Operation operation;
    const absl::Status& status;          // of all of them; if it is not OK there is nothing below
    absl::Span<const uint64_t> cookies;  // which queries these are
    absl::Span<const RowId> row_ids;     // FindFirst: one a query
    absl::Span<const bool> found;        // Contains: one a query
    absl::Span<const uint64_t> counts;   // Count: one a query
    const FindResult* matches;           // Find, Scan: query i's are (*matches)[first + i], and
    size_t first;                        // so are the keys and cursors of a scan
  };

  // A function that is called with answers, and what it needs to know. Held to the same as a
  // callback. Trivially copyable: nothing is allocated for it. The context must live until all
  // answers are there.
  struct Receiver {
    void (*receive)(void* context, const Answers& answers) = nullptr;
    void* context = nullptr;
  };

  // How a request is to be answered. Query i of its batch has the cookie `cookie` + i.
  struct Request {
    Receiver receiver;
    uint64_t cookie = 0;
    BatcherTime deadline = kNoDeadline;
  };

  // FindFirst, Contains or Find of each key. Nothing to answer in an empty batch.
  absl::Status Submit(Operation operation, const KeyBatch& keys, const Request& request);
  // Count or Scan of each range, with the options that Scan heeds.
  absl::Status Submit(Operation operation, const RangeBatch& ranges, const QueryOptions& options,
                      const Request& request);

  template <Operation kOperation>
  class Group;

  // ---- ----

  // Sends off all that waits, and returns when everything that was accepted before is answered.
  // Not from a receiver or callback.
  void Flush();
  // Flush, and everything from then on is refused. Threads that wait for room return.
  void Shutdown();

  // Runs, on the calling thread, the batches whose time has come. Returns when the next one will
  // come: BatcherTime::max() if nothing waits. For those who have a loop of their own; more threads
  // may do so at a time.
  BatcherTime Poll();

  BatcherStats Stats() const;

 private:
  friend class BatcherGroup;
  explicit Batcher(std::unique_ptr<BatcherCore> core);

  std::unique_ptr<BatcherCore> core_;
};

// What the groups of all operations share: requests on their way, and the wait for their answers.
// Not thread-safe.
class BatcherGroup {
 public:
  BatcherGroup(const BatcherGroup&) = delete;
  BatcherGroup& operator=(const BatcherGroup&) = delete;

  // Adds requests; see Batcher::Submit. ResourceExhausted beyond the group's capacity. Nothing is
  // added on an error. The first two are for FindFirst, Contains and Find, and the keys of several
  // calls go to the batcher together, under the earliest of their deadlines: what keeps it from
  // taking them is then what Wait returns. The third is for Count and Scan.
  absl::Status Add(const Batcher::Key& key, BatcherTime deadline = Batcher::kNoDeadline) {
    return Add(key.batch(), deadline);
  }
  absl::Status Add(const KeyBatch& keys, BatcherTime deadline = Batcher::kNoDeadline);
  absl::Status Add(const RangeBatch& ranges, const QueryOptions& options = {},
                   BatcherTime deadline = Batcher::kNoDeadline);

  // Returns when all requests are answered: OK, or the first error that one was answered with since
  // the last Wait. The caller has nothing else to ask meanwhile: if nobody else has either, what
  // waits in the batcher is sent off at once (unless by Callers::kNever it may not be).
  absl::Status Wait();

  // Queries since the last Clear.
  size_t size() const { return size_; }
  // Forgets the answers. Requires that Wait was called since the last Add.
  void Clear() { size_ = 0; }

 protected:
  BatcherGroup(Batcher* batcher, Operation operation, Batcher::Receiver receiver, size_t capacity);
  ~BatcherGroup();

  // For the receiver: what went wrong; then the number of queries that have been answered.
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

  // Keys that the batcher has not been given yet: the last ones of size_.
  EncodedKeys keys_;
  size_t key_count_ = 0;
  BatcherTime deadline_ = Batcher::kNoDeadline;

  int32_t submitted_ = 0;  // since the last Wait
  struct Answered;
  const std::unique_ptr<Answered> answered_;  // what those who answer change
};

// What one query of an operation is answered with.
template <Operation>
struct BatcherAnswer;
template <>
struct BatcherAnswer<Operation::kFindFirst> {
  using Type = RowId;
};
template <>
struct BatcherAnswer<Operation::kContains> {
  using Type = bool;
};
template <>
struct BatcherAnswer<Operation::kFind> {
  using Type = std::vector<RowId>;
};
template <>
struct BatcherAnswer<Operation::kCount> {
  using Type = uint64_t;
};
template <>
struct BatcherAnswer<Operation::kScan> {
  using Type = Batcher::Entries;
};

// Requests of one thread for one operation, one wait for all of them, and their answers in the
// order of submission:
//
//   Batcher::Group<Operation::kFindFirst> group(&batcher, keys.size());
//   for (uint64_t key : keys) group.Add(key).IgnoreError();
//   if (absl::Status s = group.Wait(); !s.ok()) return s;
//   use(group.answers());
//
// Not thread-safe; must not be destroyed by a receiver.
template <Operation kOperation>
class Batcher::Group : public BatcherGroup {
 public:
  using Answer = typename BatcherAnswer<kOperation>::Type;

  // For at most `capacity` queries between two calls of Clear.
  Group(Batcher* batcher, size_t capacity);
  // Waits.
  ~Group();

  // One a query, in the order of Add. Valid between Wait and the next Add or Clear.
  absl::Span<const Answer> answers() const {
    return absl::Span<const Answer>(answers_.get(), size());
  }

 private:
  static void Receive(void* context, const Answers& answers);

  std::unique_ptr<Answer[]> answers_;
};

}  // namespace cairn
