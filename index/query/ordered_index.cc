#include "cairn/ordered_index.h"

#include <algorithm>

#include "index/query/batch_check.h"
#include "index/query/match_rows.h"
#include "index/query/range_positions.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

constexpr auto Everywhere = [](size_t) { return true; };

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

// Calls emit(i, position, found) for every key: its lower bound, and whether the entry there has
// it.
template <typename Emit>
absl::Status OrderedIndex::ForEachFirst(KeyBatch keys, Emit emit) const {
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
        emit(first + i, p, p < run_.size() && column[p] == queries[i]);
      }
    });
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const {
  if (absl::Status s = CheckKind(run_.kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), row_ids.size(), "row_ids"); !s.ok()) return s;
  return ForEachFirst(keys, [&](size_t i, Position p, bool found) {
    row_ids[i] = found ? run_.row_ids()[p] : kNoRow;
  });
}

absl::Status OrderedIndex::Contains(KeyBatch keys, absl::Span<bool> found) const {
  if (absl::Status s = CheckKind(run_.kind(), keys); !s.ok()) return s;
  if (absl::Status s = CheckOutput(keys.size(), found.size(), "found"); !s.ok()) return s;
  return ForEachFirst(keys, [&](size_t i, Position, bool there) { found[i] = there; });
}

absl::Status OrderedIndex::Find(KeyBatch keys, Matches* matches) const {
  if (absl::Status s = CheckKind(run_.kind(), keys); !s.ok()) return s;
  if (absl::Status s = BeginMatches(run_.kind(), keys.size(), matches); !s.ok()) return s;
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
  if (absl::Status s = BeginMatches(run_.kind(), ranges.size(), matches); !s.ok()) return s;
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
