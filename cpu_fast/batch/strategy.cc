#include "cpu_fast/batch/strategy.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <numeric>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/part_map.h"
#include "cpu_fast/batch/sorted_search.h"
#include "cpu_fast/batch/strategy_scratch.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

using Role = StrategyScratch::Role;

// The parts of a run of fixed-width keys.
template <typename Key>
class FixedWidthParts {
 public:
  FixedWidthParts(const FixedWidthColumn<Key>& column, size_t parts, StrategyScratch* scratch)
      : map_(scratch->part_map<Key>()) {
    map_.Prepare(column.keys.data(), column.keys.size(), parts,
                 [&](size_t i) { return column[i]; });
  }
  size_t size() const { return map_.parts(); }
  size_t PartOf(Key query) const { return map_.PartOf(query); }

 private:
  PartMap<Key>& map_;
};

// The parts of a run of byte strings.
class BytesParts {
 public:
  BytesParts(const StringColumn& column, size_t parts, StrategyScratch* scratch)
      : map_(scratch->part_map<uint64_t>()) {
    const std::string_view first = column[0], last = column[column.keys.size() - 1];
    const size_t shorter = std::min(first.size(), last.size());
    const auto differ = std::mismatch(first.begin(), first.begin() + shorter, last.begin());
    common_ = first.substr(0, static_cast<size_t>(differ.first - first.begin()));
    map_.Prepare(column.keys.heap(), column.keys.size(), parts,
                 [&](size_t i) { return WordAt(column[i], common_.size()); });
  }
  size_t size() const { return map_.parts(); }
  size_t PartOf(std::string_view query) const { return map_.PartOf(WordOf(query)); }

 private:
  // Ascends with the query.
  uint64_t WordOf(std::string_view query) const {
    const int order = query.substr(0, common_.size()).compare(common_);
    if (order != 0) return order < 0 ? 0 : UINT64_MAX;
    return WordAt(query, common_.size());
  }
  // The key's eight bytes from `depth` on, zeros past its end, as a big-endian integer. Requires
  // depth <= key.size().
  static uint64_t WordAt(std::string_view key, size_t depth) {
    uint64_t word = 0;
    if (key.size() >= depth + sizeof word) {
      std::memcpy(&word, key.data() + depth, sizeof word);
    } else if (key.size() > depth) {
      std::memcpy(&word, key.data() + depth, key.size() - depth);
    }
    return __builtin_bswap64(word);
  }

  PartMap<uint64_t>& map_;
  std::string_view common_;  // what all of the run's keys start with
};

// One buffer a part, all of `capacity` queries.
template <typename Key, typename Parts>
class PartBuffers {
 public:
  PartBuffers(const OrderedIndex& index, const Parts& parts, size_t capacity,
              StrategyScratch* scratch, const Batch& batch)
      : index_(index),
        parts_(parts),
        capacity_(capacity),
        fill_(scratch->Take<uint32_t>(Role::kFill, parts.size())),
        keys_(scratch->Take<Key>(Role::kKeys, parts.size() * capacity)),
        slots_(scratch->Take<uint32_t>(Role::kSlots, parts.size() * capacity)),
        found_(batch),
        batch_(batch) {
    found_.query_of = {};
    scratch->TakeAnswers(capacity, &found_);
    std::fill(fill_.begin(), fill_.end(), 0);
  }

  absl::Status Run() {
    const absl::Span<const Key> queries = batch_.keys.as<Key>();
    for (size_t i = 0; i < queries.size(); ++i) {
      const size_t part = parts_.PartOf(queries[i]);
      const size_t at = part * capacity_ + fill_[part];
      keys_[at] = queries[i];
      slots_[at] = static_cast<uint32_t>(i);
      if (++fill_[part] < capacity_) continue;
      RETURN_IF_ERROR(RunPart(part));
    }
    for (size_t part = 0; part < parts_.size(); ++part) {
      RETURN_IF_ERROR(RunPart(part));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunPart(size_t part) {
    const size_t count = fill_[part];
    const size_t begin = part * capacity_;
    fill_[part] = 0;
    found_.keys = keys_.subspan(begin, count);
    const Batch found = found_.Slice(0, count);
    RETURN_IF_ERROR(index_.Execute(found));
    ScatterAnswers(found, slots_.subspan(begin, count), batch_);
    return absl::OkStatus();
  }

  const OrderedIndex& index_;
  const Parts& parts_;
  const size_t capacity_;             // of a buffer, in queries
  const absl::Span<uint32_t> fill_;   // [parts] queries in each buffer
  const absl::Span<Key> keys_;        // [parts][capacity_] the buffers: queries,
  const absl::Span<uint32_t> slots_;  // and which of the batch they are
  Batch found_;                       // [capacity_] answers of the buffer that is run
  const Batch& batch_;
};

// Strategy::kBuffered: each query goes to the buffer of the part of the run that its key belongs
// to, and a part's queries are searched together, so that they share cache lines and TLB entries:
// the buffered search of Kim et al., FAST (SIGMOD 2010), section 7.
//
// Two deviations. Parts are ranges of keys that a sample of the run gives (PartMap), not the
// subtrees below a tree's first page, so that this works for every ordered index; the way from the
// root to a part's subtree, walked once more, is cached by the part's first queries. Byte-string
// keys are distinguished by the first eight bytes after the common prefix of the run's keys. The
// threshold at which all buffers are run is the end of the batch.
//
// In the caller's order, on the calling thread. Requires checked arguments. Throws std::bad_alloc.
absl::Status BufferedSearch(const OrderedIndex& index, const Batch& batch,
                            const StrategyOptions& options, StrategyScratch* scratch) {
  size_t parts = options.parts;
  while (parts > 1 && batch.size() / parts < options.buffer) parts /= 2;
  if (parts == 1 || index.run().empty()) return index.Execute(batch);
  return WithColumn(index.run(), [&](const auto& column) {
    using Key = typename decltype(column.Queries(batch.keys))::value_type;
    using Parts =
        std::conditional_t<std::is_same_v<Key, std::string_view>, BytesParts, FixedWidthParts<Key>>;
    const Parts of_run(column, parts, scratch);
    return PartBuffers<Key, Parts>(index, of_run, options.buffer, scratch, batch).Run();
  });
}

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
    const QueryOptions all_rows = parallelism_.stop.As<QueryOptions>();
    return ForEachSlice(size, parallelism_, [&](size_t first, size_t count) {
      return CopyRows(index_.run(), all_rows, first, ranges.values.subspan(first, count),
                      ranges.ends.subspan(first, count), batch.matches);
    });
  }

  // Find for distinct keys: each query has at most one row.
  absl::Status FindOnly(const Batch& batch) const {
    const size_t size = batch.size();
    const StrategyScratchPool::Lease scratch = pool_->Take();
    Batch only = batch;
    only.operation = Operation::kFindFirst;
    only.rows = {};
    scratch->TakeAnswers(size, &only);
    RETURN_IF_ERROR(Execute(only));
    FindResult* const matches = batch.matches;
    RETURN_IF_ERROR(BeginMatches(index_.run().kind(), size, matches));
    matches->row_ids.resize(size);
    size_t rows = 0;
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
