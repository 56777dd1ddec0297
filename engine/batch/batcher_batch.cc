#include "engine/batch/batcher_batch.h"

#include <algorithm>

#include "index/machine/guard.h"

namespace cairn {

size_t BatcherBatch::size() const {
  size_t size = 0;
  for (const auto& block : blocks_) size += block->size();
  return size;
}

BatcherNanos BatcherBatch::earliest() const {
  BatcherNanos earliest = kNever;
  for (const auto& block : blocks_) earliest = std::min(earliest, block->earliest());
  return earliest;
}

BatcherNanos BatcherBatch::oldest() const {
  BatcherNanos oldest = kNever;
  for (const auto& block : blocks_) oldest = std::min(oldest, block->opened());
  return oldest;
}

size_t BatcherBatch::CountLate(BatcherNanos now) const {
  size_t late = 0;
  for (const auto& block : blocks_) late += block->CountLate(now);
  return late;
}

KeyBatch BatcherBatch::Keys() {
  if (blocks_.size() == 1) return blocks_[0]->keys();
  queries_.Clear(blocks_[0]->keys().kind());
  for (const auto& block : blocks_) queries_.AppendKeys(block->keys());
  return queries_.Keys();
}

RangeBatch BatcherBatch::Ranges() {
  if (blocks_.size() == 1) return blocks_[0]->ranges();
  queries_.Clear(blocks_[0]->ranges().kind());
  for (const auto& block : blocks_) queries_.AppendRanges(block->ranges());
  return queries_.Ranges();
}

absl::Status BatcherBatch::Ask(const BatchIndex& index, Operation operation,
                               absl::Duration latency_target) try {
  if (index.in_shards() && operation != Operation::kContains && operation != Operation::kCount) {
    return absl::UnimplementedError(
        "a Batcher does not return the shards of rows; query the sharded index directly");
  }
  Batch batch{operation};
  if (batch.takes_ranges()) {
    batch.ranges = Ranges();
  } else {
    batch.keys = Keys();
  }
  batch.options = blocks_[0]->options();
  batch.options.latency_target = latency_target;
  const size_t queries = size();
  if (operation == Operation::kFindFirst) {
    if (row_ids_.size() < queries) row_ids_.resize(queries);
    batch.values = absl::MakeSpan(row_ids_.data(), queries);
  } else if (operation == Operation::kContains) {
    if (found_size_ < queries) {
      found_ = std::make_unique<bool[]>(queries);
      found_size_ = queries;
    }
    batch.found = absl::MakeSpan(found_.get(), queries);
  } else if (operation == Operation::kCount) {
    if (counts_.size() < queries) counts_.resize(queries);
    batch.counts = absl::MakeSpan(counts_.data(), queries);
  } else {
    batch.matches = &matches_;
  }
  return index.Execute(batch);
} catch (...) {
  return StatusOfException("answering a batch");
}

void BatcherBatch::Deliver(Operation operation, const absl::Status& status) const {
  size_t block_begin = 0;  // in the batch
  for (const auto& block : blocks_) {
    const absl::Span<const BatcherBlock::Run> runs = block->runs();
    size_t begin = 0;  // in the block
    for (size_t i = 0; i < runs.size(); ++i) {
      const Batcher::Receiver& receiver = runs[i].receiver;
      while (i + 1 < runs.size() && Same(runs[i + 1].receiver, receiver)) ++i;
      const size_t queries = runs[i].end - begin;
      receiver.receive(receiver.context, AnswersTo(operation, status, block_begin + begin, queries,
                                                   block->cookies().subspan(begin, queries)));
      begin = runs[i].end;
    }
    block_begin += block->size();
  }
}

Batcher::Answers BatcherBatch::AnswersTo(Operation operation, const absl::Status& status,
                                         size_t first, size_t queries,
                                         absl::Span<const uint64_t> cookies) const {
  Batcher::Answers answers{operation, status, cookies, {}, {}, {}, nullptr, 0};
  if (!status.ok()) return answers;
  if (operation == Operation::kFindFirst) {
    answers.row_ids = absl::MakeConstSpan(row_ids_).subspan(first, queries);
  } else if (operation == Operation::kContains) {
    answers.found = absl::MakeConstSpan(found_.get() + first, queries);
  } else if (operation == Operation::kCount) {
    answers.counts = absl::MakeConstSpan(counts_).subspan(first, queries);
  } else {
    answers.matches = &matches_;
    answers.first = first;
  }
  return answers;
}

}  // namespace cairn
