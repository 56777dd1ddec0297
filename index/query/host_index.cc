#include "index/query/host_index.h"

#include <algorithm>

#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"
#include "index/query/range_positions.h"
#include "index/query/wide_rows.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// The number of 32-bit row ids that FindFirstRows finds before it widens them: they stay in the
// first-level cache.
constexpr size_t kWidenedTogether = 2048;

constexpr auto kEverywhere = [](size_t) { return true; };

// Answers for a run without entries.
absl::Status AnswerNothing(PhysicalType kind, const Batch& batch) {
  const uint32_t value = batch.operation == Operation::kFindFirst ? kNoRow : 0;
  std::fill(batch.values.begin(), batch.values.end(), value);
  std::fill(batch.rows.begin(), batch.rows.end(), kNoGlobalRow);
  std::fill(batch.ends.begin(), batch.ends.end(), 0);
  std::fill(batch.found.begin(), batch.found.end(), false);
  std::fill(batch.counts.begin(), batch.counts.end(), 0);
  if (!batch.gives_matches()) return absl::OkStatus();
  absl::Status s = BeginMatches(kind, batch.size(), batch.matches);
  std::fill(batch.matches->offsets.begin(), batch.matches->offsets.end(), 0);
  return s;
}

}  // namespace

// Calls emit(i, position, found) for every key: its lower bound, and whether the entry there has
// that key.
template <typename Emit>
void HostIndex::ForEachFirst(KeyBatch keys, Emit emit) const {
  Position buffer[kQueryChunk];
  for (size_t first = 0; first < keys.size(); first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, keys.size() - first);
    const KeyBatch chunk = keys.Slice(first, count);
    const absl::Span<Position> positions(buffer, count);
    LowerBound(chunk, buffer);
    PrefetchRows(run().row_ids(), positions);
    WithColumn(run(), [&](const auto& column) {
      const auto queries = column.Queries(chunk);
      PrefetchKeys(column, run().size(), positions);
      for (size_t i = 0; i < count; ++i) {
        const Position p = positions[i];
        emit(first + i, p, p < run().size() && column[p] == queries[i]);
      }
    });
  }
}

void HostIndex::FindFirst(KeyBatch keys, RowId* row_ids) const {
  ForEachFirst(keys, [&](size_t i, Position p, bool found) {
    row_ids[i] = found ? run().row_ids()[p] : kNoRow;
  });
}

void HostIndex::FindFirstRows(KeyBatch keys, GlobalRowId* rows) const {
  RowId row_ids[kWidenedTogether];
  for (size_t first = 0; first < keys.size(); first += kWidenedTogether) {
    const size_t count = std::min(kWidenedTogether, keys.size() - first);
    FindFirst(keys.Slice(first, count), row_ids);
    WidenRows({row_ids, count}, rows + first);
  }
}

void HostIndex::Contains(KeyBatch keys, bool* found) const {
  ForEachFirst(keys, [&](size_t i, Position, bool there) { found[i] = there; });
}

// Calls take(first, begin, end) for successive groups of ranges or keys of the batch: the positions
// of query first + i are [begin[i], end[i]).
template <typename Take>
absl::Status HostIndex::ForEachRange(const Batch& batch, Take take) const {
  const size_t size = batch.size();
  const auto lower_bound = [this](KeyBatch keys, Position* positions) {
    LowerBound(keys, positions);
  };
  Position begin_buffer[kQueryChunk], end_buffer[kQueryChunk];
  for (size_t first = 0; first < size; first += kQueryChunk) {
    const size_t count = std::min(kQueryChunk, size - first);
    const absl::Span<Position> begin(begin_buffer, count), end(end_buffer, count);
    if (batch.takes_ranges()) {
      RangePositions(run(), lower_bound, batch.ranges, first, begin, end);
    } else {
      const KeyBatch keys = batch.keys.Slice(first, count);
      LowerBound(keys, begin.data());
      std::copy(begin.begin(), begin.end(), end.begin());
      WithColumn(run(), [&](const auto& column) {
        SkipEqual(column, run().size(), keys, end, kEverywhere);
      });
    }
    if (absl::Status s = take(first, begin, end); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status HostIndex::AppendRanges(const Batch& batch, const QueryOptions& options) const {
  RETURN_IF_ERROR(BeginMatches(run().kind(), batch.size(), batch.matches));
  const StopCondition stop = StopCondition::Of(options);
  return ForEachRange(batch,
                      [&](size_t first, absl::Span<const Position> begin,
                          absl::Span<const Position> end) -> absl::Status {
                        RETURN_IF_ERROR(stop.Check());
                        return AppendRows(run(), options, first, begin, end, batch.matches);
                      });
}

absl::Status HostIndex::Find(const Batch& batch) const {
  return AppendRanges(batch, StopCondition::Of(batch.options).As<QueryOptions>());
}

absl::Status HostIndex::Execute(const Batch& batch) const {
  if (absl::Status s = CheckBatchWithRows(run().kind(), batch); !s.ok()) return s;
  if (const StopCondition stop = StopCondition::Of(batch.options); stop.may_stop()) {
    RETURN_IF_ERROR(stop.Check());
    if (batch.size() > kStopRows && !batch.gives_matches()) {
      return ForEachStoppable(batch.size(), stop, [&](size_t first, size_t count) {
        return Execute(batch.Slice(first, count));
      });
    }
  }
  if (run().empty()) return AnswerNothing(run().kind(), batch);
  using Ranges = absl::Span<const Position>;
  switch (batch.operation) {
    case Operation::kFindFirst:
      if (batch.rows.empty()) {
        FindFirst(batch.keys, batch.values.data());
      } else {
        FindFirstRows(batch.keys, batch.rows.data());
      }
      break;
    case Operation::kContains:
      Contains(batch.keys, batch.found.data());
      break;
    case Operation::kLowerBound:
      LowerBound(batch.keys, batch.values.data());
      break;
    case Operation::kUpperBound:
      return ForEachRange(batch, [&](size_t first, Ranges, Ranges end) {
        std::copy(end.begin(), end.end(), batch.values.begin() + first);
        return absl::OkStatus();
      });
    case Operation::kEqualRange:
    case Operation::kPositions:
      return ForEachRange(batch, [&](size_t first, Ranges begin, Ranges end) {
        std::copy(begin.begin(), begin.end(), batch.values.begin() + first);
        std::copy(end.begin(), end.end(), batch.ends.begin() + first);
        return absl::OkStatus();
      });
    case Operation::kCount:
      return ForEachRange(batch, [&](size_t first, Ranges begin, Ranges end) {
        for (size_t i = 0; i < begin.size(); ++i) batch.counts[first + i] = end[i] - begin[i];
        return absl::OkStatus();
      });
    case Operation::kFind:
      return Find(batch);
    case Operation::kScan:
      return AppendRanges(batch, batch.options);
  }
  return absl::OkStatus();
}

}  // namespace cairn
