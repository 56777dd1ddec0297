#include "cpu_fast/sorted_search.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "index/aligned_buffer.h"
#include "index/bucket_sort.h"
#include "index/run_columns.h"
#include "index/sort_entry.h"

namespace cairn {
namespace {

using Role = StrategyScratch::Role;

// Queries that are answered, then written to where the caller wants them.
constexpr size_t kChunk = 4096;

// Entries a query up to which a pass over the run beats sorted queries through an index:
// Response/cpu:fast+sort_merge and +sort_index at n:20, u32 and u64, are on a par at batch:18.
// Galloping from query to query was never the fastest: 175 ns at batch:12, where a pass took 97 and
// the index 37.
constexpr size_t kMergeRatio = 4;

// A batch in key order.
template <typename Key>
struct SortedBatch {
  absl::Span<Key> keys;
  absl::Span<uint32_t> slots;  // the place of each in the batch
};

// A query of bytes as it is sorted. Its first eight bytes, zeros behind its end, decide most
// comparisons without a look at the key.
struct BytesQuery {
  uint64_t prefix;
  uint32_t slot;
};

uint64_t PrefixOf(std::string_view key) {
  char bytes[sizeof(uint64_t)] = {};
  if (!key.empty()) std::memcpy(bytes, key.data(), std::min(key.size(), sizeof bytes));
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return __builtin_bswap64(word);
}

template <typename Key>
SortedBatch<Key> TakeSortedBatch(size_t size, StrategyScratch* scratch) {
  return {scratch->Take<Key>(Role::kKeys, size), scratch->Take<uint32_t>(Role::kSlots, size)};
}

template <typename Key>
SortedBatch<Key> Sort(absl::Span<const Key> queries, StrategyScratch* scratch) {
  // The row id of an entry is the query's place here.
  using Entry = std::conditional_t<sizeof(Key) == 4, Entry32, Entry64>;
  const absl::Span<Entry> entries = scratch->Take<Entry>(Role::kEntries, queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    entries[i] = Entry::Make(queries[i], static_cast<uint32_t>(i));
  }
  SortBucket(entries);
  const SortedBatch<Key> sorted = TakeSortedBatch<Key>(queries.size(), scratch);
  for (size_t i = 0; i < entries.size(); ++i) {
    sorted.keys[i] = entries[i].key();
    sorted.slots[i] = entries[i].row_id();
  }
  return sorted;
}

SortedBatch<std::string_view> Sort(absl::Span<const std::string_view> queries,
                                   StrategyScratch* scratch) {
  const auto entries = scratch->Take<BytesQuery>(Role::kEntries, queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    entries[i] = {PrefixOf(queries[i]), static_cast<uint32_t>(i)};
  }
  std::sort(entries.begin(), entries.end(), [&](const BytesQuery& a, const BytesQuery& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    const int order = queries[a.slot].compare(queries[b.slot]);
    return order != 0 ? order < 0 : a.slot < b.slot;
  });
  const auto sorted = TakeSortedBatch<std::string_view>(queries.size(), scratch);
  for (size_t i = 0; i < entries.size(); ++i) {
    sorted.keys[i] = queries[entries[i].slot];
    sorted.slots[i] = entries[i].slot;
  }
  return sorted;
}

// A walk along sorted keys, which start on a cache line, to the lower bounds of ascending queries.
// It goes from line to line by their last keys, and halves within a line: so no branch depends on
// where in its line a key is.
template <typename Key>
class AscendingSearch {
  static constexpr size_t kLineKeys = kCacheLineBytes / sizeof(Key);

 public:
  explicit AscendingSearch(absl::Span<const Key> keys)
      : keys_(keys), full_lines_(keys.size() / kLineKeys) {}

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
  size_t line_ = 0;  // all before end below the last query
};

// Answers sorted queries by a walk along the run's keys.
template <typename Key>
class RunWalk {
 public:
  RunWalk(absl::Span<const Key> keys, absl::Span<const RowId> row_ids, Answer answer)
      : keys_(keys), row_ids_(row_ids), answer_(answer), search_(keys) {}

  absl::Status operator()(absl::Span<const Key> queries, absl::Span<uint32_t> out) {
    for (size_t i = 0; i < queries.size(); ++i) {
      out[i] = static_cast<Position>(search_.LowerBound(queries[i]));
    }
    if (answer_ == Answer::kPosition) return absl::OkStatus();
    for (size_t i = 0; i < queries.size(); ++i) {
      const Position p = out[i];
      out[i] = p < keys_.size() && keys_[p] == queries[i] ? row_ids_[p] : kNoRow;
    }
    return absl::OkStatus();
  }

 private:
  const absl::Span<const Key> keys_;
  const absl::Span<const RowId> row_ids_;
  const Answer answer_;
  AscendingSearch<Key> search_;
};

// Puts a sorted batch to search(keys, out), and its answers in the order that is asked for.
template <typename Key, typename Search>
absl::Status AnswerSorted(const SortedBatch<Key>& batch, ResultOrder order,
                          StrategyScratch* scratch, Search search, absl::Span<uint32_t> out) {
  if (order == ResultOrder::kKey) {
    scratch->set_permutation(batch.slots);
    return search(absl::Span<const Key>(batch.keys), out);
  }
  const absl::Span<uint32_t> buffer = scratch->Take<uint32_t>(Role::kAnswers, kChunk);
  for (size_t first = 0; first < batch.keys.size(); first += kChunk) {
    const size_t count = std::min(kChunk, batch.keys.size() - first);
    const absl::Span<uint32_t> answers = buffer.subspan(0, count);
    const absl::Span<const Key> chunk = batch.keys.subspan(first, count);
    if (absl::Status s = search(chunk, answers); !s.ok()) return s;
    for (size_t i = 0; i < count; ++i) out[batch.slots[first + i]] = answers[i];
  }
  return absl::OkStatus();
}

SortedSearch Choose(SortedSearch wanted, size_t batch, const SortedRun& run) {
  if (wanted != SortedSearch::kFastest) return wanted;
  if (run.kind() == KeyKind::kBytes) return SortedSearch::kIndex;
  return run.size() / kMergeRatio <= batch ? SortedSearch::kMerge : SortedSearch::kIndex;
}

}  // namespace

absl::Status SortBasedSearch(const OrderedIndex& index, Answer answer, KeyBatch keys,
                             const StrategyOptions& options, StrategyScratch* scratch,
                             absl::Span<uint32_t> out) {
  const SortedRun& run = index.run();
  const SortedSearch way = Choose(options.sorted_search, keys.size(), run);
  return WithColumn(run, [&](const auto& column) -> absl::Status {
    const auto batch = Sort(column.Queries(keys), scratch);
    using Column = std::decay_t<decltype(column)>;
    if constexpr (std::is_same_v<Column, StringColumn>) {
      if (way != SortedSearch::kIndex) {
        return absl::UnimplementedError("keys of bytes are searched in sorted order by index only");
      }
    } else {
      using Key = typename std::decay_t<decltype(column.keys)>::value_type;
      if (way == SortedSearch::kMerge) {
        return AnswerSorted(batch, options.order, scratch,
                            RunWalk<Key>(column.keys, run.row_ids(), answer), out);
      }
    }
    const auto by_index = [&](auto queries, absl::Span<uint32_t> answers) {
      return AnswerBatch(index, answer, BatchOf(queries), answers);
    };
    return AnswerSorted(batch, options.order, scratch, by_index, out);
  });
}

}  // namespace cairn
