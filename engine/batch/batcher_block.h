#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "cairn/batcher.h"
#include "cairn/query.h"
#include "index/query/range_column.h"

namespace cairn {

// Times inside a Batcher: nanoseconds of std::chrono::steady_clock, or of BatcherOptions::clock
// since 1970.
using BatcherNanos = int64_t;
inline constexpr BatcherNanos kNever = std::numeric_limits<BatcherNanos>::max();

// A submitted request. Owns nothing.
struct BatcherRequest {
  Operation operation;
  const KeyBatch* keys;         // for FindFirst, Contains, Find; otherwise null
  const RangeBatch* ranges;     // for Count, Scan; otherwise null
  const QueryOptions* options;  // for Scan; otherwise null
  const Batcher::Request* answer;
  BatcherNanos deadline = kNever;  // set by BatcherCore; kNever: BatcherOptions::default_deadline

  size_t size() const { return keys != nullptr ? keys->size() : ranges->size(); }
};

inline bool Same(const Batcher::Receiver& a, const Batcher::Receiver& b) {
  return a.receive == b.receive && a.context == b.context;
}

// Returns whether two scans may share a batch.
inline bool SameAnswers(const QueryOptions& a, const QueryOptions& b) {
  return a.order == b.order && a.limit == b.limit && a.with_keys == b.with_keys;
}

// Queries of one operation in the order of submission, stored as columns. Scans in one block have
// equal options. Not thread-safe.
class BatcherBlock {
 public:
  // Consecutive queries that have one receiver and one deadline. A run ends before query `end` and
  // begins at the end of the previous run.
  struct Run {
    Batcher::Receiver receiver;
    BatcherNanos deadline;
    size_t end;
  };

  // Empties the block but keeps its memory, and prepares it for requests like this one.
  void Open(const BatcherRequest& request, PhysicalType kind, BatcherNanos now);

  // Returns whether the block can take this request in addition to those that it has.
  bool Fits(const BatcherRequest& request) const {
    return !sealed_ && (request.options == nullptr || SameAnswers(*request.options, options_));
  }
  // Copies the request, which is due by `deadline`. Throws std::bad_alloc: then the block keeps its
  // earlier requests and takes no more.
  void Append(const BatcherRequest& request, BatcherNanos deadline);

  size_t size() const { return runs_.empty() ? 0 : runs_.back().end; }
  BatcherNanos opened() const { return opened_; }
  BatcherNanos earliest() const { return earliest_; }  // deadline

  // The queries, valid until the block changes.
  KeyBatch keys() { return queries_.Keys().Slice(0, size()); }
  RangeBatch ranges() { return queries_.Ranges().Slice(0, size()); }
  const QueryOptions& options() const { return options_; }  // `order`, `limit`, `with_keys`
  absl::Span<const uint64_t> cookies() const { return {cookies_.data(), size()}; }
  absl::Span<const Run> runs() const { return runs_; }
  // Returns how many queries have a deadline before `now`.
  size_t CountLate(BatcherNanos now) const;

 private:
  // After a failed Append, these two may be longer than size().
  RangeColumn queries_;
  std::vector<uint64_t> cookies_;
  std::vector<Run> runs_;
  QueryOptions options_;

  BatcherNanos opened_ = 0;
  BatcherNanos earliest_ = kNever;
  bool sealed_ = false;
};

inline void BatcherBlock::Append(const BatcherRequest& request, BatcherNanos deadline) {
  sealed_ = true;  // until every column is complete
  const Batcher::Request& answer = *request.answer;
  size_t queries;
  if (request.keys != nullptr) {
    queries = request.keys->size();
    queries_.AppendKeys(*request.keys);
  } else {
    queries = request.ranges->size();
    queries_.AppendRanges(*request.ranges);
  }
  for (size_t i = 0; i < queries; ++i) cookies_.push_back(answer.cookie + i);
  if (!runs_.empty() && runs_.back().deadline == deadline &&
      Same(runs_.back().receiver, answer.receiver)) {
    runs_.back().end += queries;
  } else {
    runs_.push_back({answer.receiver, deadline, size() + queries});
    earliest_ = std::min(earliest_, deadline);
  }
  sealed_ = false;
}

}  // namespace cairn
