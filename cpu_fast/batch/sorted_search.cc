#include "cpu_fast/batch/sorted_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_format.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/query/host_index.h"
#include "index/run/run_columns.h"
#include "index/sort/sort.h"
#include "index/sort/sort_entry.h"

namespace cairn {
namespace {

// SortedSearch::kMerge: a run of 32- or 64-bit keys as an index for batches whose keys ascend. It
// executes a batch in one pass along the run, from the batch's first key to its last: the search of
// sorted queries of Kim et al., FAST (SIGMOD 2010), section 7. Uses no memory.
class MergeSearch final : public HostIndex {
 public:
  explicit MergeSearch(SortedRun run) : HostIndex(std::move(run)) {}

  std::string description() const override { return "cpu:merge"; }
  uint64_t memory_bytes() const override { return 0; }

 private:
  // Both require that `keys`, the queries, ascend.
  void LowerBound(KeyBatch keys, Position* positions) const override;
  void FindFirst(KeyBatch keys, RowId* row_ids) const override;
};

// A walk along ascending keys, which start on a cache line, to the lower bounds of ascending
// queries. It goes from line to line by their last keys, and halves within a line: so no branch
// depends on where in its line a key is.
template <typename Key>
class AscendingWalk {
  static constexpr size_t kLineKeys = kCacheLineBytes / sizeof(Key);

 public:
  // A walk for queries that are at least `first`.
  AscendingWalk(absl::Span<const Key> keys, Key first)
      : keys_(keys), full_lines_(keys.size() / kLineKeys) {
    const auto at = std::lower_bound(keys.begin(), keys.end(), first);
    line_ = static_cast<size_t>(at - keys.begin()) / kLineKeys;
  }

  // The number of keys less than `query`, which must not be less than the one before.
  size_t LowerBound(Key query) {
    while (line_ < full_lines_ && keys_[line_ * kLineKeys + kLineKeys - 1] < query) ++line_;
    const size_t first = line_ * kLineKeys;
    const Key* line = keys_.data() + first;
    size_t less = 0;
    if (line_ < full_lines_) {
      for (size_t half = kLineKeys / 2; half > 0; half /= 2) {
        // A mask, since compilers make a branch of a conditional.
        less += half & (0 - size_t{line[less + half - 1] < query});
      }
    } else {
      while (less < keys_.size() - first && line[less] < query) ++less;
    }
    return first + less;
  }

 private:
  const absl::Span<const Key> keys_;
  const size_t full_lines_;
  // The current line; the last key of each earlier line is less than the last query.
  size_t line_;
};

template <typename Key>
void FindLowerBounds(absl::Span<const Key> keys, absl::Span<const Key> queries,
                     Position* positions) {
  AscendingWalk walk(keys, queries[0]);
  for (size_t i = 0; i < queries.size(); ++i) {
    positions[i] = static_cast<Position>(walk.LowerBound(queries[i]));
  }
}

void MergeSearch::LowerBound(KeyBatch keys, Position* positions) const {
  if (keys.empty()) return;
  if (run().kind() == PhysicalType::kU32) {
    FindLowerBounds(run().u32(), keys.u32(), positions);
  } else {
    FindLowerBounds(run().u64(), keys.u64(), positions);
  }
}

void MergeSearch::FindFirst(KeyBatch keys, RowId* row_ids) const {
  LowerBound(keys, row_ids);
  const absl::Span<const RowId> rows = run().row_ids();
  WithColumn(run(), [&](const auto& column) {
    const auto queries = column.Queries(keys);
    for (size_t i = 0; i < queries.size(); ++i) {
      const Position p = row_ids[i];
      row_ids[i] = p < rows.size() && column[p] == queries[i] ? rows[p] : kNoRow;
    }
  });
}

using Role = StrategyScratch::Role;

// Queries that are executed together before their results are copied to the caller's positions.
constexpr size_t kChunk = 4096;

// Keys that are compared between two checks of whether all so far ascend.
constexpr size_t kAscendingBlock = 256;

// How many records ahead to prefetch; records are stored in batch order.
constexpr size_t kRecordsAhead = 16;

// Maximum ratio of run entries to queries at which one scan of the run beats sorted queries
// through an index. In Response/cpu:fast+sort_based,merge and +sort_based,index at n:20, u32 and
// u64, the two are equal at batch:18. Galloping from query to query was never the fastest: 175 ns
// at batch:12, a pass took 97 ns and the index 37 ns.
constexpr size_t kMergeRatio = 4;

template <typename Key>
bool AllAscend(absl::Span<const Key> keys) {
  size_t i = 1;
  if constexpr (std::is_integral_v<Key>) {
    for (; i + kAscendingBlock <= keys.size(); i += kAscendingBlock) {
      const Key* block = keys.data() + i;
      Key descents = 0;  // as wide as a key, so that compilers vectorize the loop
      for (size_t j = 0; j < kAscendingBlock; ++j) descents |= block[j] < block[j - 1];
      if (descents != 0) return false;
    }
  }
  for (; i < keys.size(); ++i) {
    if (keys[i] < keys[i - 1]) return false;
  }
  return true;
}

// The element type to sort: a query, with its batch position in the field that holds a row id in
// run entries.
template <typename Key>
using EntryOf = std::conditional_t<std::is_same_v<Key, std::string_view>, BytesEntry,
                                   std::conditional_t<sizeof(Key) == 4, Entry32, Entry64>>;

template <typename Key>
void MakeEntries(absl::Span<const Key> queries, StrategyScratch*,
                 absl::Span<EntryOf<Key>> entries) {
  for (size_t i = 0; i < queries.size(); ++i) {
    entries[i] = EntryOf<Key>::Make(queries[i], static_cast<uint32_t>(i));
  }
}

void MakeEntries(absl::Span<const std::string_view> queries, StrategyScratch* scratch,
                 absl::Span<BytesEntry> entries) {
  size_t bytes = KeyRecord::kSlack;
  for (std::string_view query : queries) bytes += KeyRecord::Bytes(query.size());
  char* record = scratch->Take<char>(Role::kRecords, bytes).data();
  for (size_t i = 0; i < queries.size(); ++i) {
    KeyRecord::Write(queries[i], static_cast<uint32_t>(i), record);
    entries[i].record = record;
    record += KeyRecord::Bytes(queries[i].size());
  }
}

absl::Status CheckLengths(absl::Span<const std::string_view> queries) {
  for (size_t i = 0; i < queries.size(); ++i) {
    if (queries[i].size() > UINT32_MAX) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "query %d: expected less than 4 GiB to sort, got %d bytes", i, queries[i].size()));
    }
  }
  return absl::OkStatus();
}
template <typename Key>
absl::Status CheckLengths(absl::Span<const Key>) {
  return absl::OkStatus();
}

// The index that executes ascending keys; `batch` is the total number of queries.
class SearchInOrder {
 public:
  SearchInOrder(const OrderedIndex& index, size_t batch, const StrategyOptions& options)
      : index_(index) {
    if (Merges(index.run(), batch, options)) merge_.emplace(index.run());
  }

  absl::Status Execute(const Batch& batch) const {
    return merge_.has_value() ? merge_->Execute(batch) : index_.Execute(batch);
  }

 private:
  static bool Merges(const SortedRun& run, size_t batch, const StrategyOptions& options) {
    if (options.strategy != Strategy::kSortBased || run.kind() == PhysicalType::kBytes)
      return false;
    if (options.sorted_search == SortedSearch::kFastest) return run.size() / kMergeRatio <= batch;
    return options.sorted_search == SortedSearch::kMerge;
  }

  const OrderedIndex& index_;
  std::optional<MergeSearch> merge_;
};

template <typename Key>
absl::Span<const EntryOf<Key>> Sort(absl::Span<const Key> queries, int threads,
                                    StrategyScratch* scratch) {
  const auto entries = scratch->Take<EntryOf<Key>>(Role::kEntries, queries.size());
  MakeEntries(queries, scratch, entries);
  SortEntries(entries, threads);
  return entries;
}

template <typename Entry>
void Unpack(absl::Span<const Entry> entries, absl::Span<typename Entry::Key> keys,
            absl::Span<uint32_t> slots) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if constexpr (std::is_same_v<Entry, BytesEntry>) {
      if (i + kRecordsAhead < entries.size()) Prefetch(entries[i + kRecordsAhead].record);
    }
    keys[i] = entries[i].key();
    slots[i] = entries[i].row_id();
  }
}

// Executes sorted queries of `batch`. Writes the result of each query to its position in `batch`,
// or, for ResultOrder::kKey, to consecutive positions, and sets query_of.
template <typename Entry>
absl::Status SearchEntries(absl::Span<const Entry> entries, const SearchInOrder& search,
                           const Batch& batch, StrategyScratch* scratch) {
  const bool by_key = batch.options.result_order == ResultOrder::kKey;
  const size_t room = std::min(kChunk, entries.size());
  const auto keys = scratch->Take<typename Entry::Key>(Role::kKeys, room);
  const auto slots = scratch->Take<uint32_t>(Role::kSlots, room);
  Batch buffer = batch;
  buffer.query_of = {};
  if (!by_key) scratch->TakeAnswers(room, &buffer);
  for (size_t first = 0; first < entries.size(); first += kChunk) {
    const size_t count = std::min(kChunk, entries.size() - first);
    Unpack(entries.subspan(first, count), keys, slots);
    Batch found = buffer.Slice(by_key ? first : 0, count);
    found.keys = keys.first(count);
    RETURN_IF_ERROR(search.Execute(found));
    if (!by_key) {
      ScatterAnswers(found, slots.first(count), batch);
    } else if (!batch.query_of.empty()) {
      std::copy_n(slots.begin(), count, batch.query_of.begin() + first);
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool Ascends(KeyBatch keys) {
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return AllAscend(keys.u32());
    case PhysicalType::kU64:
      return AllAscend(keys.u64());
    case PhysicalType::kBytes:
      break;
  }
  return AllAscend(keys.bytes());
}

absl::Status SearchAscending(const OrderedIndex& index, const Batch& batch, size_t whole,
                             const StrategyOptions& options) {
  return SearchInOrder(index, whole, options).Execute(batch);
}

absl::Status SortBasedSearch(const OrderedIndex& index, const Batch& batch,
                             const StrategyOptions& options, StrategyScratch* scratch) {
  const SearchInOrder search(index, batch.size(), options);
  return WithColumn(index.run(), [&](const auto& column) -> absl::Status {
    const auto queries = column.Queries(batch.keys);
    RETURN_IF_ERROR(CheckLengths(queries));
    return SearchEntries(Sort(queries, 1, scratch), search, batch, scratch);
  });
}

absl::Status KeyOrderSearch(const OrderedIndex& index, const Batch& batch,
                            const StrategyOptions& options, const Parallelism& parallelism,
                            StrategyScratchPool* pool) {
  const SearchInOrder search(index, batch.size(), options);
  const int threads = static_cast<int>(SliceCount(batch.size(), parallelism));
  return WithColumn(index.run(), [&](const auto& column) -> absl::Status {
    const auto queries = column.Queries(batch.keys);
    RETURN_IF_ERROR(CheckLengths(queries));
    const StrategyScratchPool::Lease batch_scratch = pool->Take();
    const auto entries = Sort(queries, threads, batch_scratch.get());
    return ForEachSlice(batch.size(), parallelism, [&](size_t first, size_t count) {
      const StrategyScratchPool::Lease scratch = pool->Take();
      return SearchEntries(entries.subspan(first, count), search, batch.Slice(first, count),
                           scratch.get());
    });
  });
}

}  // namespace cairn
