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

// Blocks of one operation that are executed together, and the memory for their answers, which is
// reused from batch to batch. Not thread-safe.
class BatcherBatch {
 public:
  // Maximum number of blocks per batch.
  static constexpr size_t kMaxBlocks = 256;

  BatcherBatch() { blocks_.reserve(kMaxBlocks); }

  std::vector<std::unique_ptr<BatcherBlock>>* blocks() { return &blocks_; }

  // The following functions require at least one block.
  size_t size() const;
  BatcherNanos earliest() const;  // deadline
  BatcherNanos oldest() const;    // when the first request arrived
  size_t CountLate(BatcherNanos now) const;

  // Ask executes the batch. Deliver then calls the receivers with the answers, or with `status` if
  // it is an error. ResourceExhausted: no memory for the answers.
  absl::Status Ask(const BatchIndex& index, Operation operation, absl::Duration latency_target);
  void Deliver(Operation operation, const absl::Status& status) const;

 private:
  KeyBatch Keys();
  RangeBatch Ranges();
  // Returns the answers to `queries` queries, starting at query `first`.
  Batcher::Answers AnswersTo(Operation operation, const absl::Status& status, size_t first,
                             size_t queries, absl::Span<const uint64_t> cookies) const;

  std::vector<std::unique_ptr<BatcherBlock>> blocks_;
  // The queries, if there are several blocks. A single block is used in place.
  RangeColumn queries_;
  // Answers.
  std::vector<RowId> row_ids_;
  std::unique_ptr<bool[]> found_;
  size_t found_size_ = 0;
  std::vector<uint64_t> counts_;
  FindResult matches_;
};

}  // namespace cairn
