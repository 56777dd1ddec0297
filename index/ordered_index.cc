#include "cairn/ordered_index.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "absl/strings/str_format.h"
#include "index/batch_check.h"
#include "index/range_positions.h"
#include "index/run_columns.h"

namespace cairn {
namespace {

constexpr auto Everywhere = [](size_t) { return true; };

absl::Status OutOfMemory(uint64_t rows) {
  return absl::ResourceExhaustedError(absl::StrFormat("no memory for a result of %d rows", rows));
}

// Runs `append`, which grows *matches, and turns what an allocation throws into a Status.
template <typename Append>
absl::Status Growing(uint64_t rows, Append append) {
  try {
    append();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(rows);
  } catch (const std::length_error&) {
    return OutOfMemory(rows);
  }
  return absl::OkStatus();
}

// Empties *matches for a batch of `queries`.
absl::Status Begin(KeyKind kind, size_t queries, Matches* matches) {
  matches->row_ids.clear();
  matches->keys.Clear(kind);
  matches->cursors.clear();
  return Growing(0, [&] {
    matches->offsets.resize(queries + 1);
    matches->offsets[0] = 0;
  });
}

// Appends the rows of at most kQueryChunk position ranges, the first of which is range `first` of
// the batch. Requires that the offsets up to it be set.
absl::Status AppendRows(const SortedRun& run, const QueryOptions& options, size_t first,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        Matches* matches) {
  uint64_t total = matches->offsets[first];
  for (size_t i = 0; i < begin.size(); ++i) {
    total += std::min<uint64_t>(end[i] - begin[i], options.limit);
    matches->offsets[first + i + 1] = total;
  }
  if (absl::Status s = Growing(total, [&] { matches->row_ids.resize(total); }); !s.ok()) return s;
  const bool descending = options.order == Order::kDescending;
  PrefetchRows(run.row_ids(), descending ? end : begin);
  RowId* out = matches->row_ids.data() + matches->offsets[first];
  const RowId* rows = run.row_ids().data();
  for (size_t i = 0; i < begin.size(); ++i) {
    const uint64_t count = std::min<uint64_t>(end[i] - begin[i], options.limit);
    if (descending) {
      out = std::reverse_copy(rows + end[i] - count, rows + end[i], out);
    } else {
      out = std::copy(rows + begin[i], rows + begin[i] + count, out);
    }
  }
  if (!options.with_keys) return absl::OkStatus();
  return Growing(total, [&] {
    WithColumn(run, [&](const auto& column) {
      for (size_t i = 0; i < begin.size(); ++i) {
        const uint64_t count = std::min<uint64_t>(end[i] - begin[i], options.limit);
        for (uint64_t k = 0; k < count; ++k) {
          column.Append(descending ? end[i] - 1 - k : begin[i] + k, &matches->keys);
        }
      }
    });
  });
}

}  // namespace

absl::Status OrderedIndex::UpperBound(KeyBatch keys, absl::Span<Position> positions) const {
  if (absl::Status s = CheckKind(run_.kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), positions.size(), "positions"); !s.ok()) return s;
  for (size_t first = 0; first < keys.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, keys.size() - first);
    const KeyBatch chunk = keys.Slice(first, count);
    const absl::Span<Position> found = positions.subspan(first, count);
    if (absl::Status s = LowerBound(chunk, found); !s.ok()) return s;
    WithColumn(run_, [&](const auto& column) {
      SkipEqual(column, run_.size(), chunk, found, Everywhere);
    });
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const {
  if (absl::Status s = CheckKind(run_.kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), row_ids.size(), "row_ids"); !s.ok()) return s;
  Position buffer[kQueryChunk];
  for (size_t first = 0; first < keys.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, keys.size() - first);
    const KeyBatch chunk = keys.Slice(first, count);
    const absl::Span<Position> positions(buffer, count);
    if (absl::Status s = LowerBound(chunk, positions); !s.ok()) return s;
    PrefetchRows(run_.row_ids(), positions);
    WithColumn(run_, [&](const auto& column) {
      const auto queries = column.Queries(chunk);
      PrefetchKeys(column, run_.size(), positions);
      for (size_t i = 0; i < count; ++i) {
        const Position p = positions[i];
        row_ids[first + i] =
            p < run_.size() && column[p] == queries[i] ? run_.row_ids()[p] : kNoRow;
      }
    });
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Contains(KeyBatch keys, absl::Span<bool> found) const {
  if (absl::Status s = CheckKind(run_.kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), found.size(), "found"); !s.ok()) return s;
  Position buffer[kQueryChunk];
  for (size_t first = 0; first < keys.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, keys.size() - first);
    const KeyBatch chunk = keys.Slice(first, count);
    const absl::Span<Position> positions(buffer, count);
    if (absl::Status s = LowerBound(chunk, positions); !s.ok()) return s;
    WithColumn(run_, [&](const auto& column) {
      const auto queries = column.Queries(chunk);
      PrefetchKeys(column, run_.size(), positions);
      for (size_t i = 0; i < count; ++i) {
        const Position p = positions[i];
        found[first + i] = p < run_.size() && column[p] == queries[i];
      }
    });
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Find(KeyBatch keys, Matches* matches) const {
  if (absl::Status s = CheckKind(run_.kind(), keys); !s.ok()) return s;
  if (absl::Status s = Begin(run_.kind(), keys.size(), matches); !s.ok()) return s;
  Position begin_buffer[kQueryChunk], end_buffer[kQueryChunk];
  for (size_t first = 0; first < keys.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, keys.size() - first);
    const KeyBatch chunk = keys.Slice(first, count);
    const absl::Span<Position> begin(begin_buffer, count), end(end_buffer, count);
    if (absl::Status s = LowerBound(chunk, begin); !s.ok()) return s;
    std::copy(begin.begin(), begin.end(), end.begin());
    WithColumn(run_,
               [&](const auto& column) { SkipEqual(column, run_.size(), chunk, end, Everywhere); });
    if (absl::Status s = AppendRows(run_, {}, first, begin, end, matches); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                                     absl::Span<Position> end) const {
  if (absl::Status s = CheckRanges(run_.kind(), ranges); !s.ok()) return s;
  if (absl::Status s = CheckOutput(ranges.size(), begin.size(), "begin"); !s.ok()) return s;
  if (absl::Status s = CheckOutput(ranges.size(), end.size(), "end"); !s.ok()) return s;
  for (size_t first = 0; first < ranges.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, ranges.size() - first);
    if (absl::Status s = RangePositions(*this, ranges, first, begin.subspan(first, count),
                                        end.subspan(first, count));
        !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const {
  if (absl::Status s = CheckRanges(run_.kind(), ranges); !s.ok()) return s;
  if (absl::Status s = CheckOutput(ranges.size(), counts.size(), "counts"); !s.ok()) return s;
  Position begin_buffer[kQueryChunk], end_buffer[kQueryChunk];
  for (size_t first = 0; first < ranges.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, ranges.size() - first);
    const absl::Span<Position> begin(begin_buffer, count), end(end_buffer, count);
    if (absl::Status s = RangePositions(*this, ranges, first, begin, end); !s.ok()) return s;
    for (size_t i = 0; i < count; ++i) counts[first + i] = end[i] - begin[i];
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Scan(const RangeBatch& ranges, const QueryOptions& options,
                                Matches* matches) const {
  if (absl::Status s = CheckRanges(run_.kind(), ranges); !s.ok()) return s;
  if (absl::Status s = Begin(run_.kind(), ranges.size(), matches); !s.ok()) return s;
  Position begin_buffer[kQueryChunk], end_buffer[kQueryChunk];
  for (size_t first = 0; first < ranges.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, ranges.size() - first);
    const absl::Span<Position> begin(begin_buffer, count), end(end_buffer, count);
    if (absl::Status s = RangePositions(*this, ranges, first, begin, end); !s.ok()) return s;
    if (absl::Status s = AppendRows(run_, options, first, begin, end, matches); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace cairn
