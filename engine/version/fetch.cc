#include "engine/version/fetch.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/extract/row_extractor.h"
#include "engine/version/distinct_rows.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "index/query/range_column.h"

namespace cairn {
namespace {

// Rows that are read from the database between two checks of a stop condition.
constexpr size_t kStopReads = 1024;

// The current rows of the database, in the order of their primary keys.
struct CurrentRows {
  std::vector<RowId> row_ids;       // distinct
  StringList primary_keys;          // one per row
  std::vector<std::string> values;  // one per row; empty if the row is gone
  EncodedKeys keys;                 // of all rows, concatenated
  std::vector<size_t> key_ends;     // row i's keys end at key_ends[i]
  std::vector<bool> found;

  size_t key_begin(size_t row) const { return row == 0 ? 0 : key_ends[row - 1]; }
};

// Compares row ids by their primary keys.
auto InOrderOf(const IndexVersion& version) {
  return [&rows = *version.delta->rows](RowId a, RowId b) { return rows.Less(a, b); };
}

absl::StatusOr<CurrentRows> ReadRows(const IndexVersion& version, const SnapshotSource& source,
                                     const std::vector<RowId>& wanted, const StopCondition& stop) {
  ASSIGN_OR_RETURN(RowExtractor extractor, RowExtractor::Create(version.spec()));
  CurrentRows rows;
  rows.keys.Clear(extractor.codec().kind());
  rows.row_ids = wanted;
  std::sort(rows.row_ids.begin(), rows.row_ids.end(), InOrderOf(version));
  rows.row_ids.erase(std::unique(rows.row_ids.begin(), rows.row_ids.end()), rows.row_ids.end());
  RETURN_IF_ERROR(
      ForEachStoppable(rows.row_ids.size(), stop, [&](size_t first, size_t count) -> absl::Status {
        return version.delta->PrimaryKeys(absl::MakeConstSpan(rows.row_ids).subspan(first, count),
                                          &rows.primary_keys);
      }));
  std::vector<std::string_view> primary_keys;
  for (size_t i = 0; i < rows.row_ids.size(); ++i) {
    primary_keys.push_back(rows.primary_keys[i]);
    if (i == 0 || primary_keys[i - 1] <= primary_keys[i]) continue;
    return absl::DataLossError(
        absl::StrFormat("index '%s' is damaged: the primary keys of rows %d and %d do not ascend",
                        version.base->directory, rows.row_ids[i - 1], rows.row_ids[i]));
  }
  rows.values.resize(primary_keys.size());
  rows.found.resize(primary_keys.size());
  rows.key_ends.reserve(primary_keys.size());

  RowExtractor::Scratch scratch;
  const auto take = [&](size_t i, const RowView& row) -> absl::Status {
    // Rows in between are gone. A row that cannot be read any more has no key that could match.
    rows.key_ends.resize(i, rows.keys.size());
    rows.found[i] = extractor.Extract(row, &scratch, &rows.keys).ok();
    rows.key_ends.push_back(rows.keys.size());
    rows.values[i].assign(row.value);
    return absl::OkStatus();
  };
  const size_t at_a_time = stop.may_stop() ? kStopReads : std::max<size_t>(primary_keys.size(), 1);
  for (size_t first = 0; first < primary_keys.size(); first += at_a_time) {
    RETURN_IF_ERROR(stop.Check());
    const size_t count = std::min(at_a_time, primary_keys.size() - first);
    RETURN_IF_ERROR(source.Get(absl::MakeConstSpan(primary_keys).subspan(first, count),
                               [&](size_t i, const RowView& row) { return take(first + i, row); }));
  }
  rows.key_ends.resize(primary_keys.size(), rows.keys.size());
  return rows;
}

bool KeyWithin(const EncodedKeys& keys, size_t k, const RangeBatch& ranges, size_t i) {
  return WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    return IsWithin<Key>(KeyAt<Key>(keys, k), ranges, i);
  });
}

}  // namespace

absl::Status FetchRows(const IndexVersion& version, const SnapshotSource& source,
                       const RangeBatch& ranges, const FindResult& matches,
                       const StopCondition& stop, FetchResult* rows) {
  rows->offsets.assign(1, 0);
  rows->row_ids.clear();
  rows->shards.clear();
  rows->primary_keys.Clear();
  rows->values.Clear();
  rows->cursors.clear();
  rows->stale = 0;
  ASSIGN_OR_RETURN(CurrentRows current, ReadRows(version, source, matches.row_ids, stop));

  std::unordered_set<RowId> returned;  // for the current range
  size_t looked_at = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    returned.clear();
    for (const RowId row_id : matches[i]) {
      if (looked_at++ % kStopRows == 0) RETURN_IF_ERROR(stop.Check());
      if (!returned.insert(row_id).second) continue;
      const auto at = std::lower_bound(current.row_ids.begin(), current.row_ids.end(), row_id,
                                       InOrderOf(version));
      const size_t row = static_cast<size_t>(at - current.row_ids.begin());
      bool matches_now = false;
      for (size_t k = current.key_begin(row); k < current.key_ends[row] && !matches_now; ++k) {
        matches_now = KeyWithin(current.keys, k, ranges, i);
      }
      if (!current.found[row] || !matches_now) {
        ++rows->stale;
        continue;
      }
      rows->row_ids.push_back(row_id);
      rows->primary_keys.Append(current.primary_keys[row]);
      rows->values.Append(current.values[row]);
    }
    rows->offsets.push_back(rows->row_ids.size());
  }
  return absl::OkStatus();
}

}  // namespace cairn
