#include "index/match_rows.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "absl/strings/str_format.h"
#include "index/run_columns.h"

namespace cairn {
namespace {

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

}  // namespace

absl::Status BeginMatches(KeyKind kind, size_t queries, Matches* matches) {
  matches->row_ids.clear();
  matches->keys.Clear(kind);
  matches->cursors.clear();
  return Growing(0, [&] {
    matches->offsets.resize(queries + 1);
    matches->offsets[0] = 0;
  });
}

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

}  // namespace cairn
