#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/batch_index.h"
#include "cairn/batcher.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/batch/batcher_block.h"
#include "index/query/range_column.h"

namespace cairn {

// Blocks of one operation that are put to the index together, and the memory for its answers, kept
// from batch to batch. Not thread-safe.
class BatcherBatch {
 public:
  // Blocks that a batch may have.
  static constexpr size_t kMaxBlocks = 256;

  BatcherBatch() { blocks_.reserve(kMaxBlocks); }

  std::vector<std::unique_ptr<BatcherBlock>>* blocks() { return &blocks_; }

  // What follows requires blocks.
  size_t size() const;
  BatcherNanos earliest() const;  // deadline
  BatcherNanos oldest() const;    // when the first request came
  size_t CountLate(BatcherNanos now) const;

  // Asks the index; then Deliver calls the receivers with its answers, or with `status` if it is an
  // error. ResourceExhausted where there is no memory for the answers.
  absl::Status Ask(const BatchIndex& index, Operation operation, absl::Duration latency_target);
  void Deliver(Operation operation, const absl::Status& status) const;

 private:
  KeyBatch Keys();
  RangeBatch Ranges();
  // Those to the `queries` queries from `first` on.
  Batcher::Answers AnswersTo(Operation operation, const absl::Status& status, size_t first,
                             size_t queries, absl::Span<const uint64_t> cookies) const;

  std::vector<std::unique_ptr<BatcherBlock>> blocks_;
  // The queries of several blocks; of one alone they stay where they are.
  RangeColumn queries_;
  // Answers.
  std::vector<RowId> row_ids_;
  std::unique_ptr<bool[]> found_;
  size_t found_size_ = 0;
  std::vector<uint64_t> counts_;
  FindResult matches_;
};

}  // namespace cairn
