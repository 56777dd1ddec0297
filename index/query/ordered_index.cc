#include "cairn/ordered_index.h"

#include <algorithm>

#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"
#include "index/query/range_positions.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

constexpr auto Everywhere = [](size_t) { return true; };

}  // namespace

absl::Status OrderedIndex::UpperBound(KeyBatch keys, absl::Span<Position> positions) const {
  RETURN_IF_ERROR(CheckKind(run_.kind(), keys));
  RETURN_IF_ERROR(CheckOutput(keys.size(), positions.size(), "positions"));
  for (size_t first = 0; first < keys.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, keys.size() - first);
    const KeyBatch chunk = keys.Slice(first, count);
    const absl::Span<Position> found = positions.subspan(first, count);
    RETURN_IF_ERROR(LowerBound(chunk, found));
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
    RETURN_IF_ERROR(LowerBound(chunk, positions));
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
  RETURN_IF_ERROR(CheckKind(run_.kind(), keys));
  RETURN_IF_ERROR(CheckOutput(keys.size(), row_ids.size(), "row_ids"));
  return ForEachFirst(keys, [&](size_t i, Position p, bool found) {
    row_ids[i] = found ? run_.row_ids()[p] : kNoRow;
  });
}

absl::Status OrderedIndex::Contains(KeyBatch keys, absl::Span<bool> found) const {
  RETURN_IF_ERROR(CheckKind(run_.kind(), keys));
  RETURN_IF_ERROR(CheckOutput(keys.size(), found.size(), "found"));
  return ForEachFirst(keys, [&](size_t i, Position, bool there) { found[i] = there; });
}

absl::Status OrderedIndex::Find(KeyBatch keys, Matches* matches) const {
  RETURN_IF_ERROR(CheckKind(run_.kind(), keys));
  RETURN_IF_ERROR(BeginMatches(run_.kind(), keys.size(), matches));
  Position begin_buffer[kQueryChunk], end_buffer[kQueryChunk];
  for (size_t first = 0; first < keys.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, keys.size() - first);
    const KeyBatch chunk = keys.Slice(first, count);
    const absl::Span<Position> begin(begin_buffer, count), end(end_buffer, count);
    RETURN_IF_ERROR(LowerBound(chunk, begin));
    std::copy(begin.begin(), begin.end(), end.begin());
    WithColumn(run_,
               [&](const auto& column) { SkipEqual(column, run_.size(), chunk, end, Everywhere); });
    RETURN_IF_ERROR(AppendRows(run_, {}, first, begin, end, matches));
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                                     absl::Span<Position> end) const {
  RETURN_IF_ERROR(CheckRanges(run_.kind(), ranges));
  RETURN_IF_ERROR(CheckOutput(ranges.size(), begin.size(), "begin"));
  RETURN_IF_ERROR(CheckOutput(ranges.size(), end.size(), "end"));
  for (size_t first = 0; first < ranges.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, ranges.size() - first);
    RETURN_IF_ERROR(RangePositions(*this, ranges, first, begin.subspan(first, count),
                                   end.subspan(first, count)));
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const {
  RETURN_IF_ERROR(CheckRanges(run_.kind(), ranges));
  RETURN_IF_ERROR(CheckOutput(ranges.size(), counts.size(), "counts"));
  Position begin_buffer[kQueryChunk], end_buffer[kQueryChunk];
  for (size_t first = 0; first < ranges.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, ranges.size() - first);
    const absl::Span<Position> begin(begin_buffer, count), end(end_buffer, count);
    RETURN_IF_ERROR(RangePositions(*this, ranges, first, begin, end));
    for (size_t i = 0; i < count; ++i) counts[first + i] = end[i] - begin[i];
  }
  return absl::OkStatus();
}

absl::Status OrderedIndex::Scan(const RangeBatch& ranges, const QueryOptions& options,
                                Matches* matches) const {
  RETURN_IF_ERROR(CheckRanges(run_.kind(), ranges));
  RETURN_IF_ERROR(BeginMatches(run_.kind(), ranges.size(), matches));
  Position begin_buffer[kQueryChunk], end_buffer[kQueryChunk];
  for (size_t first = 0; first < ranges.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, ranges.size() - first);
    const absl::Span<Position> begin(begin_buffer, count), end(end_buffer, count);
    RETURN_IF_ERROR(RangePositions(*this, ranges, first, begin, end));
    RETURN_IF_ERROR(AppendRows(run_, options, first, begin, end, matches));
  }
  return absl::OkStatus();
}

}  // namespace cairn
