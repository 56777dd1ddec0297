#include "index/query/match_rows.h"

#include <algorithm>

#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// Rows and keys that are copied between two checks of a stop condition.
constexpr uint64_t kCopiedTogether = uint64_t{1} << 20;
constexpr uint64_t kKeysTogether = uint64_t{1} << 16;

// Runs `append`, which grows a FindResult, and converts exceptions of allocations to a Status.
template <typename Append>
absl::Status Growing(Append append) {
  return Guarded("growing a result", [&] {
    append();
    return absl::OkStatus();
  });
}

// Empties *matches for a batch of `queries`, except its rows.
absl::Status BeginOffsets(PhysicalType kind, size_t queries, FindResult* matches) {
  matches->keys.Clear(kind);
  matches->cursors.clear();
  matches->columns.clear();
  matches->shards.clear();
  return Growing([&] {
    matches->offsets.resize(queries + 1);
    matches->offsets[0] = 0;
  });
}

}  // namespace

absl::Status BeginMatches(PhysicalType kind, size_t queries, FindResult* matches) {
  matches->row_ids.clear();
  return BeginOffsets(kind, queries, matches);
}

absl::Status AllocateRows(const QueryOptions& options, size_t first,
                          absl::Span<const Position> begin, absl::Span<const Position> end,
                          FindResult* matches) {
  uint64_t total = matches->offsets[first];
  for (size_t i = 0; i < begin.size(); ++i) {
    total += std::min<uint64_t>(end[i] - begin[i], options.limit);
    matches->offsets[first + i + 1] = total;
  }
  return Growing([&] { matches->row_ids.resize(total); });
}

absl::Status PlanMatches(PhysicalType kind, const QueryOptions& options,
                         absl::Span<const Position> begin, absl::Span<const Position> end,
                         FindResult* matches) {
  RETURN_IF_ERROR(BeginOffsets(kind, begin.size(), matches));
  return AllocateRows(options, 0, begin, end, matches);
}

absl::Status CopyRows(const SortedRun& run, const QueryOptions& options, size_t first,
                      absl::Span<const Position> begin, absl::Span<const Position> end,
                      FindResult* matches) {
  const StopCondition stop = StopCondition::Of(options);
  uint64_t copied = 0;  // since the last check
  const bool descending = options.order == Order::kDescending;
  const RowId* rows = run.row_ids().data();
  RowId* out = matches->row_ids.data() + matches->offsets[first];
  for (size_t chunk = 0; chunk < begin.size(); chunk += kQueryChunk) {
    const size_t chunk_end = std::min(chunk + kQueryChunk, begin.size());
    PrefetchRows(run.row_ids(), (descending ? end : begin).subspan(chunk, chunk_end - chunk));
    for (size_t i = chunk; i < chunk_end; ++i) {
      const uint64_t count = std::min<uint64_t>(end[i] - begin[i], options.limit);
      if (stop.may_stop() && (copied += count) > kCopiedTogether) {
        copied = 0;
        for (uint64_t at = 0; at < count; at += kCopiedTogether) {
          RETURN_IF_ERROR(stop.Check());
          const uint64_t some = std::min(kCopiedTogether, count - at);
          out = descending ? std::reverse_copy(rows + end[i] - at - some, rows + end[i] - at, out)
                           : std::copy_n(rows + begin[i] + at, some, out);
        }
        continue;
      }
      out = descending ? std::reverse_copy(rows + end[i] - count, rows + end[i], out)
                       : std::copy(rows + begin[i], rows + begin[i] + count, out);
    }
  }
  return absl::OkStatus();
}

absl::Status AppendKeys(const SortedRun& run, const QueryOptions& options,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        FindResult* matches) {
  if (!options.with_keys) return absl::OkStatus();
  const bool descending = options.order == Order::kDescending;
  const StopCondition stop = StopCondition::Of(options);
  uint64_t appended = 0;
  return Guarded("growing a result", [&] {
    return WithColumn(run, [&](const auto& column) -> absl::Status {
      for (size_t i = 0; i < begin.size(); ++i) {
        const uint64_t count = std::min<uint64_t>(end[i] - begin[i], options.limit);
        for (uint64_t k = 0; k < count; ++k) {
          if (++appended % kKeysTogether == 0) RETURN_IF_ERROR(stop.Check());
          column.Append(descending ? end[i] - 1 - k : begin[i] + k, &matches->keys);
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::Status AppendRows(const SortedRun& run, const QueryOptions& options, size_t first,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        FindResult* matches) {
  RETURN_IF_ERROR(AllocateRows(options, first, begin, end, matches));
  RETURN_IF_ERROR(CopyRows(run, options, first, begin, end, matches));
  return AppendKeys(run, options, begin, end, matches);
}

}  // namespace cairn
