#include "engine/version/versioned_search.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/str_format.h"
#include "cairn/query.h"
#include "engine/delta/compact_delta.h"
#include "engine/version/version_ranges.h"
#include "index/machine/mutex.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/physical_key.h"
#include "index/query/wide_rows.h"

namespace cairn {
namespace {

absl::Status NoMemory(size_t queries) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("no memory to answer a batch of %d queries", queries));
}

// Marks a run without an entry of a key.
constexpr Position kNone = DeltaSegment::kNone;

// The keys of a batch in the order of its results.
template <typename Key>
class PointBatch {
 public:
  explicit PointBatch(const Batch& batch)
      : keys_(batch.keys.as<Key>()),
        query_of_(batch.options.result_order == ResultOrder::kKey ? batch.query_of.data()
                                                                  : nullptr) {}

  Key key(size_t answer) const { return keys_[query_of_ == nullptr ? answer : query_of_[answer]]; }

  // Calls body(answers) with groups of those of the `count` results from `first` on whose keys may
  // have added or removed entries. A group has at most kQueryChunk.
  template <typename Body>
  absl::Status ForEachTouched(const KeyFilter& filter, size_t first, size_t count,
                              Body body) const {
    uint32_t group[2 * kQueryChunk];  // the gathered ones, and room for a chunk
    size_t size = 0;
    const size_t end = first + count;
    for (size_t at = first; at < end; at += kQueryChunk) {
      const size_t chunk = std::min(end - at, kQueryChunk);
      const size_t passed = filter.Select(Keys(at, chunk), group + size);
      for (size_t i = 0; i < passed; ++i) group[size + i] += static_cast<uint32_t>(at);
      size += passed;
      while (size >= kQueryChunk || (size > 0 && at + chunk == end)) {
        const size_t some = std::min(kQueryChunk, size);
        RETURN_IF_ERROR(body(absl::MakeConstSpan(group, some)));
        size -= some;
        std::copy_n(group + some, size, group);
      }
    }
    return absl::OkStatus();
  }

 private:
  // The keys of a chunk of results.
  absl::Span<const Key> Keys(size_t first, size_t count) const {
    if (query_of_ == nullptr) return keys_.subspan(first, count);
    static thread_local Key chunk[kQueryChunk];
    for (size_t i = 0; i < count; ++i) chunk[i] = key(first + i);
    return {chunk, count};
  }

  absl::Span<const Key> keys_;
  const uint32_t* query_of_;
};

// Merges a delta's entries for groups of keys. One object serves one thread.
template <typename Key>
class PointMerge {
 public:
  // Takes groups of up to `most` results.
  PointMerge(const Delta& delta, const PointBatch<Key>& batch, size_t most)
      : delta_(delta),
        batch_(batch),
        base_keys_(ColumnOf<Key>(delta.base_run)),
        runs_(RunsOf(delta)),
        most_(most),
        first_(most * runs_.size()) {}

  // Takes a group of results; first_row(answer) is the base's first row, or kNoRow.
  template <typename FirstRow>
  absl::Status Take(absl::Span<const uint32_t> answers, FirstRow first_row) {
    const size_t size = answers.size();
    for (size_t j = 0; j < size; ++j) {
      keys_[j] = batch_.key(answers[j]);
      hashes_[j] = KeyFilter::Hash(keys_[j]);
      const RowId row = first_row(answers[j]);
      if (row != kNoRow) delta_.positions->Prefetch(row);
    }
    const absl::Span<const Key> keys(keys_, size);
    const absl::Span<const uint64_t> hashes(hashes_, size);
    for (const DeltaPart& part : delta_.parts) part.segment->Prefetch(hashes);
    for (size_t r = 1; r < runs_.size(); ++r) {
      const absl::Span<Position> found(first(r), size);
      RETURN_IF_ERROR(delta_.parts[r - 1].segment->FindFirst(keys, hashes, found));
      for (Position p : found) {
        if (p != kNone) runs_[r].removed->Prefetch(p);
      }
    }
    for (size_t j = 0; j < size; ++j) {
      const RowId row = first_row(answers[j]);
      first(0)[j] = row == kNoRow ? kNone : PositionOf(row, keys_[j]);
      if (row != kNoRow) delta_.removed.Prefetch(first(0)[j]);
    }
    return absl::OkStatus();
  }

  // The first row of the group's key j, or kNoRow.
  RowId First(size_t j) const {
    RowId least = kNoRow;
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (first(r)[j] == kNone) continue;
      const RunRange& run = runs_[r];
      uint64_t p = first(r)[j];
      if (run.removed->Contains(p)) {
        const uint64_t end = EndOfKey(run, p, keys_[j]);
        p = run.removed->FirstAbsent(p + 1, end);
        if (p == end) continue;
      }
      if (least == kNoRow || delta_.rows->Less(run.rows[p], least)) least = run.rows[p];
    }
    return least;
  }

  // Appends all rows of the group's key j, for which the base has `base_rows`, to `rows`. If these
  // are the base's, returns false and appends nothing.
  bool All(size_t j, size_t base_rows, std::vector<RowId>* rows) {
    uint64_t total = 0;
    bool same = true;
    for (size_t r = 0; r < runs_.size(); ++r) {
      RunRange& run = runs_[r];
      run.begin = run.end = first(r)[j] == kNone ? 0 : first(r)[j];
      if (first(r)[j] == kNone) continue;
      run.end = r == 0 ? run.begin + base_rows : EndOfKey(run, run.begin, keys_[j]);
      const uint64_t entries = run.entries();
      total += entries;
      same &= r == 0 ? entries == base_rows : entries == 0;
    }
    if (same) return false;
    const size_t before = rows->size();
    rows->resize(before + total);
    RangeMerge<Key>(*delta_.rows, absl::MakeSpan(runs_))
        .Ascend(total, rows->data() + before, nullptr);
    return true;
  }

 private:
  // The keys' first entries in a run, or kNone.
  Position* first(size_t run) { return first_.data() + run * most_; }
  const Position* first(size_t run) const { return first_.data() + run * most_; }

  // The position after the entries of `key`; `p` is the first of them.
  static uint64_t EndOfKey(const RunRange& run, uint64_t p, Key key) {
    const auto column = ColumnOf<Key>(*run.run);
    return Gallop(p + 1, run.run->size(), [&](size_t at) { return column[at] == key; });
  }
  // The position of an existing entry in the base.
  Position PositionOf(RowId row, Key key) const {
    const absl::Span<const Position> positions = (*delta_.positions)[row];
    size_t i = 0;
    while (i + 1 < positions.size() && base_keys_[positions[i]] != key) ++i;
    return positions[i];
  }

  const Delta& delta_;
  const PointBatch<Key>& batch_;
  const decltype(ColumnOf<Key>(SortedRun())) base_keys_;
  Runs runs_;
  const size_t most_;
  absl::FixedArray<Position, 256> first_;
  Key keys_[kQueryChunk];
  uint64_t hashes_[kQueryChunk];
};

// New rows for some queries of a batch, ascending.
struct ChangedRows {
  struct Query {
    size_t query;
    size_t end;  // end of its rows in `rows`
  };
  std::vector<Query> queries;
  std::vector<RowId> rows;
};

// Replaces the rows of these queries. The rows of all others move: first those that move backward,
// from the last one on, then those that move forward, from the first one on, so that none is
// overwritten before it has moved.
void Splice(const ChangedRows& changed, FindResult* matches) {
  struct Piece {
    uint64_t begin, end;  // rows that stay together
    int64_t shift;
  };
  std::vector<uint64_t>& offsets = matches->offsets;
  std::vector<Piece> pieces;
  uint64_t begin = 0;
  int64_t shift = 0;
  size_t first_row = 0;
  for (const auto& [query, end_row] : changed.queries) {
    pieces.push_back({begin, offsets[query], shift});
    begin = offsets[query + 1];
    shift +=
        static_cast<int64_t>(end_row - first_row) - static_cast<int64_t>(begin - offsets[query]);
    first_row = end_row;
  }
  pieces.push_back({begin, offsets.back(), shift});

  const uint64_t rows = offsets.back() + static_cast<uint64_t>(shift);
  if (shift > 0) matches->row_ids.resize(rows);
  RowId* const row_ids = matches->row_ids.data();
  const auto move = [&](const Piece& piece) {
    std::memmove(row_ids + piece.begin + piece.shift, row_ids + piece.begin,
                 (piece.end - piece.begin) * sizeof(RowId));
  };
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->shift > 0 && piece->begin < piece->end) move(*piece);
  }
  for (const Piece& piece : pieces) {
    if (piece.shift < 0 && piece.begin < piece.end) move(piece);
  }
  matches->row_ids.resize(rows);

  first_row = 0;
  for (size_t c = 0; c < changed.queries.size(); ++c) {
    const auto [query, end_row] = changed.queries[c];
    const uint64_t next_query =
        c + 1 < changed.queries.size() ? changed.queries[c + 1].query : offsets.size() - 1;
    const Piece& piece = pieces[c + 1];
    for (uint64_t i = query + 1; i <= next_query; ++i) {
      offsets[i] += static_cast<uint64_t>(piece.shift);
    }
    std::copy(changed.rows.begin() + static_cast<ptrdiff_t>(first_row),
              changed.rows.begin() + static_cast<ptrdiff_t>(end_row),
              matches->row_ids.begin() + static_cast<ptrdiff_t>(offsets[query]));
    first_row = end_row;
  }
}

// Merges added and removed entries into the base's results of a FindFirst.
absl::Status MergeFirst(const Delta& delta, const Batch& batch, const Parallelism& parallelism) {
  const absl::Span<RowId> row_ids = batch.values;   // either these
  const absl::Span<GlobalRowId> rows = batch.rows;  // or these
  const auto first_row = [&](uint32_t i) {
    return rows.empty() ? row_ids[i] : RowInShard(rows[i]);
  };
  return WithPhysicalKey(batch.keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const PointBatch<Key> points(batch);
    return ForEachSlice(batch.size(), parallelism, [&](size_t first, size_t count) {
      std::optional<PointMerge<Key>> merge;  // most small batches need none
      return points.ForEachTouched(*delta.filter, first, count,
                                   [&](absl::Span<const uint32_t> answers) {
                                     if (!merge.has_value())
                                       merge.emplace(delta, points, std::min(count, kQueryChunk));
                                     absl::Status s = merge->Take(answers, first_row);
                                     for (size_t j = 0; s.ok() && j < answers.size(); ++j) {
                                       const RowId row = merge->First(j);
                                       if (rows.empty()) {
                                         row_ids[answers[j]] = row;
                                       } else {
                                         rows[answers[j]] = WideRow(row);
                                       }
                                     }
                                     return s;
                                   });
    });
  });
}

// The same for a Find.
absl::Status MergeAll(const Delta& delta, const Batch& batch, const Parallelism& parallelism) {
  FindResult& matches = *batch.matches;
  Mutex mutex;
  std::vector<std::pair<size_t, ChangedRows>> slices;  // guarded by mutex while there are threads
  absl::Status status = WithPhysicalKey(batch.keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const PointBatch<Key> points(batch);
    return ForEachSlice(batch.size(), parallelism, [&](size_t first, size_t count) {
      std::optional<PointMerge<Key>> merge;
      ChangedRows changed;
      absl::Status s = points.ForEachTouched(
          *delta.filter, first, count, [&](absl::Span<const uint32_t> answers) {
            if (!merge.has_value()) merge.emplace(delta, points, std::min(count, kQueryChunk));
            absl::Status taken = merge->Take(
                answers, [&](uint32_t i) { return matches[i].empty() ? kNoRow : matches[i][0]; });
            for (size_t j = 0; taken.ok() && j < answers.size(); ++j) {
              if (merge->All(j, matches[answers[j]].size(), &changed.rows)) {
                changed.queries.push_back({answers[j], changed.rows.size()});
              }
            }
            return taken;
          });
      if (s.ok() && !changed.queries.empty()) {
        const MutexLock lock(&mutex);
        slices.emplace_back(first, std::move(changed));
      }
      return s;
    });
  });
  if (!status.ok() || slices.empty()) return status;
  std::sort(slices.begin(), slices.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  ChangedRows& all = slices[0].second;
  for (size_t s = 1; s < slices.size(); ++s) {
    const ChangedRows& more = slices[s].second;
    for (const auto& [query, end] : more.queries) {
      all.queries.push_back({query, all.rows.size() + end});
    }
    all.rows.insert(all.rows.end(), more.rows.begin(), more.rows.end());
  }
  Splice(all, &matches);
  return absl::OkStatus();
}

// Small batches wait for both the filter and the base, so both are prefetched together. For larger
// ones, the filter would no longer be in the cache when it is read.
void PrefetchFilter(const KeyFilter& filter, const KeyBatch& keys) {
  WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    constexpr size_t kMaxKeys = std::is_integral_v<Key> ? kQueryChunk : 16;
    if (keys.size() > kMaxKeys) return;
    for (const Key& key : keys.as<Key>()) filter.Prefetch(KeyFilter::Hash(key));
  });
}

absl::Status AnswerPoints(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                          const Batch& batch, const Parallelism& parallelism) {
  if (batch.operation == Operation::kContains) {
    std::vector<RowId> row_ids(batch.size());
    Batch first = batch;
    first.operation = Operation::kFindFirst;
    first.values = absl::MakeSpan(row_ids);
    first.rows = {};
    absl::Status s = AnswerPoints(delta, base, first, parallelism);
    for (size_t i = 0; s.ok() && i < row_ids.size(); ++i) batch.found[i] = row_ids[i] != kNoRow;
    return s;
  }
  const bool changed = !delta.empty();
  if (changed) PrefetchFilter(*delta.filter, batch.keys);
  if (absl::Status s = base(batch); !s.ok() || !changed || batch.empty()) return s;
  return batch.operation == Operation::kFind ? MergeAll(delta, batch, parallelism)
                                             : MergeFirst(delta, batch, parallelism);
}

// The work for CompactDelta. A batch with a latency target does not build the compact form.
uint64_t WorkOf(const Batch& batch) {
  if (batch.options.latency_target != absl::InfiniteDuration()) return 0;
  return batch.size() *
         (batch.takes_ranges() ? CompactDelta::kRangeWork : CompactDelta::kPointWork);
}

}  // namespace

absl::Status AnswerVersion(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                           const Batch& batch, const Parallelism& parallelism, uint64_t index) try {
  RETURN_IF_ERROR(CheckBatchWithRows(delta.base_run.kind(), batch));
  const Delta& asked = CompactOf(delta, WorkOf(batch));
  absl::Status status = batch.takes_ranges() ? AnswerRanges(asked, base, batch, parallelism, index)
                                             : AnswerPoints(asked, base, batch, parallelism);
  if (batch.explain != nullptr) batch.explain->operation = batch.operation;
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory(batch.size());
} catch (const std::length_error&) {
  return NoMemory(batch.size());
}

}  // namespace cairn
