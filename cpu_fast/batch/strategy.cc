#include "cpu_fast/batch/strategy.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>

#include "absl/strings/str_format.h"
#include "cpu_fast/batch/buffered_search.h"
#include "cpu_fast/batch/sorted_search.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"

namespace cairn {
namespace {

constexpr size_t kMaxParts = 1024;

absl::Status CheckOptions(const Batch& batch, const StrategyOptions& options) {
  const bool sorts = options.strategy == Strategy::kSortBased;
  if (batch.options.result_order == ResultOrder::kKey && !sorts && !batch.options.sorted_input) {
    return absl::InvalidArgumentError(
        "results in key order require the sort-based strategy or sorted input");
  }
  if (sorts && options.sorted_search == SortedSearch::kMerge &&
      batch.keys.kind() == PhysicalType::kBytes) {
    return absl::UnimplementedError("byte-string keys: SortedSearch::kMerge is not supported");
  }
  if (options.parts == 0 || options.parts > kMaxParts ||
      (options.parts & (options.parts - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "parts: expected a power of two up to %d, got %d", kMaxParts, options.parts));
  }
  if (options.buffer == 0 || options.buffer > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("buffer: got %d queries, expected 1 to %d", options.buffer, kMaxEntries));
  }
  if (batch.size() > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("batch: got %d keys, expected at most %d", batch.size(), kMaxEntries));
  }
  return batch.query_of.empty() ? absl::OkStatus()
                                : CheckOutput(batch.size(), batch.query_of.size(), "query_of");
}

// Executes point operations by one strategy.
class PointStrategy {
 public:
  PointStrategy(const OrderedIndex& index, const StrategyOptions& options,
                const Parallelism& parallelism, StrategyScratchPool* pool)
      : index_(index), options_(options), parallelism_(parallelism), pool_(pool) {}

  // Executes a batch and sets query_of.
  absl::Status Execute(const Batch& batch) const {
    if (batch.operation == Operation::kFind) {
      return options_.distinct_keys ? FindOnly(batch) : Find(batch);
    }
    const bool by_key = batch.options.result_order == ResultOrder::kKey;
    if (by_key && !BatchAscends(batch.keys)) {
      return KeyOrderSearch(index_, batch, options_, parallelism_, pool_);
    }
    std::iota(batch.query_of.begin(), batch.query_of.end(), 0);
    return ForEachSlice(batch.size(), parallelism_, [&](size_t first, size_t count) {
      const Batch slice = batch.Slice(first, count);
      return by_key ? SearchAscending(index_, slice, batch.size(), options_) : AnswerSlice(slice);
    });
  }

 private:
  absl::Status Find(const Batch& batch) const {
    const size_t size = batch.size();
    if (options_.strategy == Strategy::kUnbuffered &&
        batch.options.result_order == ResultOrder::kCaller && SliceCount(size, parallelism_) == 1) {
      std::iota(batch.query_of.begin(), batch.query_of.end(), 0);
      return index_.Execute(batch);
    }
    const PhysicalType kind = index_.run().kind();
    const StrategyScratchPool::Lease scratch = pool_->Take();
    Batch ranges = batch;
    ranges.operation = Operation::kEqualRange;
    scratch->TakeAnswers(size, &ranges);
    absl::Status s = Execute(ranges);
    if (s.ok()) s = PlanMatches(kind, {}, ranges.values, ranges.ends, batch.matches);
    if (!s.ok()) return s;
    return ForEachSlice(size, parallelism_, [&](size_t first, size_t count) {
      CopyRows(index_.run(), {}, first, ranges.values.subspan(first, count),
               ranges.ends.subspan(first, count), batch.matches);
      return absl::OkStatus();
    });
  }

  // Find for distinct keys: each query has at most one row.
  absl::Status FindOnly(const Batch& batch) const {
    const size_t size = batch.size();
    const StrategyScratchPool::Lease scratch = pool_->Take();
    Batch only = batch;
    only.operation = Operation::kFindFirst;
    scratch->TakeAnswers(size, &only);
    RETURN_IF_ERROR(Execute(only));
    FindResult* const matches = batch.matches;
    matches->keys.Clear(index_.run().kind());
    matches->cursors.clear();
    matches->offsets.resize(size + 1);
    matches->row_ids.resize(size);
    size_t rows = 0;
    matches->offsets[0] = 0;
    for (size_t i = 0; i < size; ++i) {
      matches->row_ids[rows] = only.values[i];
      rows += only.values[i] != kNoRow;  // avoids a data-dependent branch
      matches->offsets[i + 1] = rows;
    }
    matches->row_ids.resize(rows);
    return absl::OkStatus();
  }

  bool BatchAscends(const KeyBatch& keys) const {
    std::atomic<bool> ascends = true;
    const absl::Status s = ForEachSlice(keys.size(), parallelism_, [&](size_t first, size_t count) {
      const size_t before = first > 0 ? 1 : 0;  // the key before the slice
      if (!Ascends(keys.Slice(first - before, count + before))) ascends = false;
      return absl::OkStatus();
    });
    return s.ok() && ascends;
  }

  // Executes a slice of the batch in the caller's order, on the calling thread.
  absl::Status AnswerSlice(const Batch& batch) const {
    switch (options_.strategy) {
      case Strategy::kUnbuffered:
        break;
      case Strategy::kBuffered:
        // A sorted batch is already grouped by partition.
        if (batch.options.sorted_input && Ascends(batch.keys)) break;
        return BufferedSearch(index_, batch, options_, pool_->Take().get());
      case Strategy::kSortBased:
        if (Ascends(batch.keys)) return SearchAscending(index_, batch, batch.size(), options_);
        return SortBasedSearch(index_, batch, options_, pool_->Take().get());
    }
    return index_.Execute(batch);
  }

  const OrderedIndex& index_;
  const StrategyOptions& options_;
  const Parallelism& parallelism_;
  StrategyScratchPool* const pool_;
};

}  // namespace

absl::Status Execute(const OrderedIndex& index, const Batch& batch, const StrategyOptions& options,
                     const Parallelism& parallelism, StrategyScratchPool* pool) {
  if (batch.takes_ranges()) {
    if (batch.options.result_order == ResultOrder::kCaller) {
      return Execute(index, batch, parallelism);
    }
    return absl::InvalidArgumentError("ranges: results are available in the caller's order only");
  }
  RETURN_IF_ERROR(CheckBatch(index.run().kind(), batch));
  RETURN_IF_ERROR(CheckOptions(batch, options));
  try {
    return PointStrategy(index, options, parallelism, pool).Execute(batch);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("out of memory for a batch of %d queries", batch.size()));
  }
}

}  // namespace cairn
