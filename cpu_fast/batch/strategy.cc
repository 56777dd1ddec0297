#include "cpu_fast/batch/strategy.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "cpu_fast/batch/batch_answer.h"
#include "cpu_fast/batch/buffered_search.h"
#include "cpu_fast/batch/sorted_search.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"

namespace cairn {
namespace {

constexpr size_t kMaxParts = 1024;

absl::Status CheckOptions(KeyKind kind, const StrategyOptions& options) {
  const bool sorts = options.strategy == Strategy::kSortBased;
  if (options.order == ResultOrder::kKey && !sorts && !options.sorted_input) {
    return absl::InvalidArgumentError(
        "only the sort-based strategy, or sorted input, gives results in key order");
  }
  if (sorts && options.sorted_search == SortedSearch::kMerge && kind == KeyKind::kBytes) {
    return absl::UnimplementedError("sorted keys of bytes are searched by index only, not merged");
  }
  if (options.parts == 0 || options.parts > kMaxParts ||
      (options.parts & (options.parts - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("parts are a power of two, at most %d, not %d", kMaxParts, options.parts));
  }
  if (options.buffer == 0 || options.buffer > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a buffer of %d queries; it takes 1 to %d", options.buffer, kMaxEntries));
  }
  return absl::OkStatus();
}

// One call of an operation.
class StrategyCall {
 public:
  StrategyCall(const OrderedIndex& index, KeyBatch keys, const StrategyOptions& options,
               const Parallelism& parallelism, StrategyScratchPool* pool,
               absl::Span<uint32_t> query_of)
      : index_(index),
        keys_(keys),
        options_(options),
        parallelism_(parallelism),
        pool_(pool),
        query_of_(query_of) {}

  // `size` is of the caller's output, called `name` in a message.
  absl::Status Run(const Answers& answers, size_t size, std::string_view name) const {
    absl::Status s = Check();
    if (s.ok()) s = CheckOutput(keys_.size(), size, name);
    return s.ok() ? Guarded([&] { return Answer(answers); }) : s;
  }

  absl::Status RunFind(Matches* matches) const {
    RETURN_IF_ERROR(Check());
    return Guarded([&] { return options_.distinct_keys ? FindOnly(matches) : Find(matches); });
  }

 private:
  absl::Status Check() const {
    const KeyKind kind = index_.run().kind();
    RETURN_IF_ERROR(CheckKind(kind, keys_));
    RETURN_IF_ERROR(CheckOptions(kind, options_));
    if (keys_.size() > kMaxEntries) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a batch of %d keys; a strategy takes %d", keys_.size(), kMaxEntries));
    }
    if (query_of_.empty()) return absl::OkStatus();
    return CheckOutput(keys_.size(), query_of_.size(), "query_of");
  }

  absl::Status Guarded(absl::FunctionRef<absl::Status()> body) const {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("no memory to answer a batch of %d queries", keys_.size()));
    }
  }

  // Answers the batch, and sets query_of.
  absl::Status Answer(const Answers& answers) const {
    const bool by_key = options_.order == ResultOrder::kKey;
    if (by_key && !BatchAscends()) {
      return KeyOrderSearch(index_, keys_, answers, options_, parallelism_, pool_, query_of_);
    }
    std::iota(query_of_.begin(), query_of_.end(), 0);
    return ForEachSlice(keys_.size(), parallelism_, [&](size_t first, size_t count) {
      const KeyBatch keys = keys_.Slice(first, count);
      const Answers slice = answers.Slice(first, count);
      return by_key ? SearchAscending(index_, keys, keys_.size(), slice, options_)
                    : AnswerSlice(keys, slice);
    });
  }

  absl::Status Find(Matches* matches) const {
    const size_t size = keys_.size();
    if (options_.strategy == Strategy::kUnbuffered && options_.order == ResultOrder::kCaller &&
        SliceCount(size, parallelism_) == 1) {
      std::iota(query_of_.begin(), query_of_.end(), 0);
      return index_.Find(keys_, matches);
    }
    const StrategyScratchPool::Lease scratch = pool_->Take();
    const Answers ranges = scratch->TakeAnswers(PointQuery::kEqualRange, size);
    absl::Status s = Answer(ranges);
    if (s.ok()) s = PlanMatches(index_.run().kind(), {}, ranges.values, ranges.ends, matches);
    if (!s.ok()) return s;
    return ForEachSlice(size, parallelism_, [&](size_t first, size_t count) {
      const Answers slice = ranges.Slice(first, count);
      CopyRows(index_.run(), {}, first, slice.values, slice.ends, matches);
      return absl::OkStatus();
    });
  }

  // The only row of each key.
  absl::Status FindOnly(Matches* matches) const {
    const size_t size = keys_.size();
    const StrategyScratchPool::Lease scratch = pool_->Take();
    const Answers only = scratch->TakeAnswers(PointQuery::kFindFirst, size);
    RETURN_IF_ERROR(Answer(only));
    matches->keys.Clear(index_.run().kind());
    matches->cursors.clear();
    matches->offsets.resize(size + 1);
    matches->row_ids.resize(size);
    size_t rows = 0;
    matches->offsets[0] = 0;
    for (size_t i = 0; i < size; ++i) {
      matches->row_ids[rows] = only.values[i];
      rows += only.values[i] != kNoRow;  // without a branch that depends on it
      matches->offsets[i + 1] = rows;
    }
    matches->row_ids.resize(rows);
    return absl::OkStatus();
  }

  bool BatchAscends() const {
    std::atomic<bool> ascends = true;
    const absl::Status s =
        ForEachSlice(keys_.size(), parallelism_, [&](size_t first, size_t count) {
          const size_t before = first > 0 ? 1 : 0;  // a key that the slice must not fall below
          if (!Ascends(keys_.Slice(first - before, count + before))) ascends = false;
          return absl::OkStatus();
        });
    return s.ok() && ascends;
  }

  // Answers a part of the batch in the caller's order, on the calling thread.
  absl::Status AnswerSlice(KeyBatch keys, const Answers& answers) const {
    switch (options_.strategy) {
      case Strategy::kUnbuffered:
        break;
      case Strategy::kBuffered:
        if (options_.sorted_input && Ascends(keys)) break;  // parts lie together as it is
        return BufferedSearch(index_, keys, answers, options_, pool_->Take().get());
      case Strategy::kSortBased:
        if (Ascends(keys)) return SearchAscending(index_, keys, keys.size(), answers, options_);
        return SortBasedSearch(index_, keys, answers, options_, pool_->Take().get());
    }
    return AnswerBatch(index_, keys, answers);
  }

  const OrderedIndex& index_;
  const KeyBatch keys_;
  const StrategyOptions& options_;
  const Parallelism& parallelism_;
  StrategyScratchPool* const pool_;
  const absl::Span<uint32_t> query_of_;
};

}  // namespace

absl::Status LowerBound(const OrderedIndex& index, KeyBatch keys, absl::Span<Position> positions,
                        const StrategyOptions& options, const Parallelism& parallelism,
                        StrategyScratchPool* pool, absl::Span<uint32_t> query_of) {
  return StrategyCall(index, keys, options, parallelism, pool, query_of)
      .Run({PointQuery::kLowerBound, positions}, positions.size(), "positions");
}

absl::Status UpperBound(const OrderedIndex& index, KeyBatch keys, absl::Span<Position> positions,
                        const StrategyOptions& options, const Parallelism& parallelism,
                        StrategyScratchPool* pool, absl::Span<uint32_t> query_of) {
  return StrategyCall(index, keys, options, parallelism, pool, query_of)
      .Run({PointQuery::kUpperBound, positions}, positions.size(), "positions");
}

absl::Status FindFirst(const OrderedIndex& index, KeyBatch keys, absl::Span<RowId> row_ids,
                       const StrategyOptions& options, const Parallelism& parallelism,
                       StrategyScratchPool* pool, absl::Span<uint32_t> query_of) {
  return StrategyCall(index, keys, options, parallelism, pool, query_of)
      .Run({PointQuery::kFindFirst, row_ids}, row_ids.size(), "row_ids");
}

absl::Status Contains(const OrderedIndex& index, KeyBatch keys, absl::Span<bool> found,
                      const StrategyOptions& options, const Parallelism& parallelism,
                      StrategyScratchPool* pool, absl::Span<uint32_t> query_of) {
  return StrategyCall(index, keys, options, parallelism, pool, query_of)
      .Run({PointQuery::kContains, {}, {}, found}, found.size(), "found");
}

absl::Status Find(const OrderedIndex& index, KeyBatch keys, Matches* matches,
                  const StrategyOptions& options, const Parallelism& parallelism,
                  StrategyScratchPool* pool, absl::Span<uint32_t> query_of) {
  return StrategyCall(index, keys, options, parallelism, pool, query_of).RunFind(matches);
}

}  // namespace cairn
