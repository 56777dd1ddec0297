#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cairn/batcher.h"
#include "cairn/query.h"

namespace cairn {

// Times inside a Batcher: nanoseconds since the epoch of its clock.
using BatcherNanos = int64_t;
inline constexpr BatcherNanos kNever = std::numeric_limits<BatcherNanos>::max();

// One request as it was submitted. Owns nothing.
struct BatcherRequest {
  Operation operation;
  const KeyBatch* keys = nullptr;  // FindFirst, Contains, Find
  const RangeBatch* ranges = nullptr;
  const QueryOptions* options = nullptr;  // Scan
  Batcher::Receiver receiver;
  uint64_t cookie = 0;
  BatcherNanos deadline = kNever;  // kNever: the default one

  size_t size() const { return keys != nullptr ? keys->size() : ranges->size(); }
};

// Queries of one operation and, for scans, of equal options, in the order of submission,
// column-wise. Not thread-safe.
class BatcherBlock {
 public:
  // Consecutive queries for one receiver: those up to `end` that are in no earlier run.
  struct Run {
    Batcher::Receiver receiver;
    size_t end;
  };

  // Empties the block, keeps its memory, and readies it for requests like this one.
  void Open(const BatcherRequest& request, KeyKind kind, BatcherNanos now);

  // Whether the block takes this request beside those that it has.
  bool Fits(const BatcherRequest& request) const;
  // Copies the request, due by `deadline`. Throws std::bad_alloc: then the block has what it had
  // before and takes nothing more.
  void Append(const BatcherRequest& request, BatcherNanos deadline);

  size_t size() const { return runs_.empty() ? 0 : runs_.back().end; }
  BatcherNanos opened() const { return opened_; }
  BatcherNanos earliest() const { return earliest_; }  // deadline

  // The queries, valid until the block changes.
  KeyBatch keys() { return keys_.Batch().Slice(0, size()); }
  RangeBatch ranges();
  const QueryOptions& options() const { return options_; }  // `order`, `limit`, `with_keys`
  absl::Span<const uint64_t> cookies() const { return {cookies_.data(), size()}; }
  absl::Span<const Run> runs() const { return runs_; }
  // How many queries should have been answered before `now`.
  size_t CountLate(BatcherNanos now) const;

 private:
  // Columns may be longer than size() behind a failed Append: that part is nobody's.
  KeyColumn keys_;   // or lower keys
  KeyColumn upper_;  // ranges only, and so are the next three
  std::vector<Bound> lower_bounds_;
  std::vector<Bound> upper_bounds_;
  std::vector<std::string> after_;  // empty while no range has a cursor
  std::vector<uint64_t> cookies_;
  std::vector<BatcherNanos> deadlines_;
  std::vector<Run> runs_;
  QueryOptions options_;
  BatcherNanos opened_ = 0;
  BatcherNanos earliest_ = kNever;
  bool sealed_ = false;
};

// Whether two scans may share a batch.
bool SameAnswers(const QueryOptions& a, const QueryOptions& b);

// Appends all keys of a batch, or some of another column.
void AppendKeys(const KeyBatch& keys, KeyColumn* column);
void AppendKeys(const KeyColumn& keys, size_t first, size_t count, KeyColumn* column);

}  // namespace cairn
