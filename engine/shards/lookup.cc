#include "engine/shards/lookup.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"
#include "engine/shards/open_index.h"
#include "engine/shards/shard_cursor.h"
#include "engine/util/scan_cursor.h"
#include "engine/version/distinct_rows.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/range_column.h"

namespace cairn {
namespace {

absl::Status OfIndex(const SecondaryIndex& index, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrFormat("index '%s', %s", index.spec().name, status.message()));
}

absl::Status PhysicalRanges(const SecondaryIndex& index, const KeyQuery& query,
                            RangeColumn* ranges) {
  const absl::Status s = RangesOf(query, index.codec(), ranges);
  return s.ok() ? s : OfIndex(index, s);
}

// Checks that the cursor is one of the range.
absl::Status CheckCursor(const SecondaryIndex& index, std::string_view cursor,
                         RangeColumn* ranges) {
  const std::optional<IndexVersions> open = VersionsOf(index);
  absl::Status s;
  if (open.has_value() && open->by_source) {
    const auto decoded = SourceCursor::Decode(cursor, index.kind(), open->versions.size());
    s = decoded.ok() ? decoded->entry.CheckWithin(ranges->Ranges(), 0) : decoded.status();
  } else {
    const auto decoded = ScanCursor::Decode(cursor, index.kind());
    s = decoded.ok() ? decoded->CheckWithin(ranges->Ranges(), 0) : decoded.status();
  }
  if (s.ok()) return s;
  return OfIndex(index,
                 absl::Status(s.code(), absl::StrFormat("LookupOptions::after: %s", s.message())));
}

absl::Status PhysicalRanges(const SecondaryIndex& index, const KeyQuery& query,
                            const LookupOptions& options, RangeColumn* ranges) {
  if (!options.after.empty() && query.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a lookup with a cursor requires one key, prefix or range, not a "
                        "batch of %d keys",
                        query.size()));
  }
  RETURN_IF_ERROR(PhysicalRanges(index, query, ranges));
  if (options.after.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckCursor(index, options.after, ranges));
  ranges->GoOnAfter(options.after);
  return absl::OkStatus();
}

QueryOptions ScanOptions(const LookupOptions& options) {
  QueryOptions scan = StopCondition::Of(options).As<QueryOptions>();
  scan.limit = options.limit;
  scan.order = options.order;
  return scan;
}

// Keeps only the first of several equal rows of one range.
absl::Status DropRepeatedRows(const SecondaryIndex& version, bool by_source, FindResult* matches) {
  std::vector<size_t> kept;
  kept.reserve(matches->row_ids.size());
  if (matches->shards.empty() || by_source) {
    std::unordered_set<GlobalRowId> seen;
    for (size_t j = 0; j < matches->row_ids.size(); ++j) {
      if (seen.insert(matches->row(j)).second) kept.push_back(j);
    }
  } else {
    // A row with keys in several shards has a different id in each.
    StringList primary_keys;
    RETURN_IF_ERROR(version.PrimaryKeys(*matches, &primary_keys));
    std::unordered_set<std::string_view> seen;
    for (size_t j = 0; j < primary_keys.size(); ++j) {
      if (seen.insert(primary_keys[j]).second) kept.push_back(j);
    }
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    matches->row_ids[i] = matches->row_ids[kept[i]];
    if (!matches->shards.empty()) matches->shards[i] = matches->shards[kept[i]];
  }
  matches->row_ids.resize(kept.size());
  if (!matches->shards.empty()) matches->shards.resize(kept.size());
  matches->offsets = {0, kept.size()};
  return absl::OkStatus();
}

absl::Status FindRows(const SecondaryIndex& version, RangeColumn* query,
                      const LookupOptions& options, FindResult* matches) {
  const bool whole = options.limit == LookupOptions().limit && options.after.empty() &&
                     options.order == Order::kAscending;
  if (query->is_keys() && whole) {
    return version.Find(query->Keys(), matches, ScanOptions(options));
  }
  if (query->is_keys() || !MayHaveSeveralKeys(version.spec())) {
    return version.Scan(query->Ranges(), matches, ScanOptions(options));
  }
  const std::optional<IndexVersions> open = VersionsOf(version);
  RETURN_IF_ERROR(ScanDistinctRows(
      open->versions, open->by_source, [&](const Batch& batch) { return version.Execute(batch); },
      query->Ranges(), ScanOptions(options), matches));
  // The result is not a page.
  return DropRepeatedRows(version, open->by_source, matches);
}

// Finds the rows of a query and their primary keys.
absl::Status FindKeys(const SecondaryIndex& version, const KeyQuery& query,
                      const LookupOptions& options, FindResult* matches, StringList* primary_keys) {
  RangeColumn ranges;
  RETURN_IF_ERROR(PhysicalRanges(version, query, options, &ranges));
  RETURN_IF_ERROR(FindRows(version, &ranges, options, matches));
  return ForEachStoppable(
      matches->row_ids.size(), StopCondition::Of(options), [&](size_t first, size_t count) {
        return version.PrimaryKeys(RowSpan(*matches).Slice(first, count), primary_keys);
      });
}

absl::Status CheckHasNoColumns(const LookupOptions& options) {
  if (options.columns.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "LookupRows returns whole rows without columns; use Lookup for columns");
}

}  // namespace

absl::StatusOr<FoundKeys> LookUpKeys(const SecondaryIndex& version, const KeyQuery& query,
                                     const LookupOptions& options) {
  FindResult matches;
  auto keys = std::make_shared<StringList>();
  RETURN_IF_ERROR(FindKeys(version, query, options, &matches, keys.get()));
  std::vector<ColumnValues> columns;
  if (!options.columns.empty()) {
    RETURN_IF_ERROR(StopCondition::Of(options).Check());
    RETURN_IF_ERROR(version.Columns(matches, options.columns, &columns));
  }
  std::vector<std::string_view> views;
  views.reserve(keys->size());
  for (size_t i = 0; i < keys->size(); ++i) views.push_back((*keys)[i]);
  return FoundKeys(std::move(views), std::move(matches.offsets), std::move(matches.cursors),
                   std::move(keys), std::move(columns));
}

absl::StatusOr<FoundRows> LookUpRows(const SecondaryIndex& version, ReadValuesOf read,
                                     const KeyQuery& query, const LookupOptions& options) {
  struct Bytes {
    StringList primary_keys, values;
  };
  RETURN_IF_ERROR(CheckHasNoColumns(options));
  FindResult matches;
  auto bytes = std::make_shared<Bytes>();
  RETURN_IF_ERROR(FindKeys(version, query, options, &matches, &bytes->primary_keys));
  std::vector<size_t> value_of;
  RETURN_IF_ERROR(read(bytes->primary_keys, &bytes->values, &value_of));
  std::vector<FoundRow> rows;
  rows.reserve(value_of.size());
  std::vector<uint64_t> offsets = {0};
  offsets.reserve(matches.offsets.size());
  for (size_t range = 0; range + 1 < matches.offsets.size(); ++range) {
    for (uint64_t i = matches.offsets[range]; i < matches.offsets[range + 1]; ++i) {
      if (value_of[i] == SIZE_MAX) continue;
      rows.push_back({bytes->primary_keys[i], bytes->values[value_of[i]]});
    }
    offsets.push_back(rows.size());
  }
  return FoundRows(std::move(rows), std::move(offsets), std::move(matches.cursors),
                   std::move(bytes));
}

absl::StatusOr<FoundRows> LookUpRows(const SecondaryIndex& version, const SnapshotSource& rows,
                                     const KeyQuery& query, const LookupOptions& options) {
  RETURN_IF_ERROR(CheckHasNoColumns(options));
  RangeColumn ranges;
  RETURN_IF_ERROR(PhysicalRanges(version, query, options, &ranges));
  auto fetched = std::make_shared<FetchResult>();
  RETURN_IF_ERROR(version.Fetch(rows, ranges.Ranges(), ScanOptions(options), fetched.get()));
  std::vector<FoundRow> found;
  found.reserve(fetched->primary_keys.size());
  for (size_t i = 0; i < fetched->primary_keys.size(); ++i) {
    found.push_back({fetched->primary_keys[i], fetched->values[i]});
  }
  std::vector<uint64_t> offsets = std::move(fetched->offsets);
  std::vector<std::string> cursors = std::move(fetched->cursors);
  return FoundRows(std::move(found), std::move(offsets), std::move(cursors), std::move(fetched));
}

absl::StatusOr<FoundKeys> SecondaryIndex::Lookup(const KeyQuery& keys,
                                                 const LookupOptions& options) const {
  return Guarded("looking up keys", [&]() -> absl::StatusOr<FoundKeys> {
    ASSIGN_OR_RETURN(const std::shared_ptr<const SecondaryIndex> pinned,
                     Pin(StopCondition::Of(options).As<QueryOptions>()));
    return LookUpKeys(*pinned, keys, options);
  });
}

absl::StatusOr<FoundRows> SecondaryIndex::LookupRows(const SnapshotSource& source,
                                                     const KeyQuery& keys,
                                                     const LookupOptions& options) const {
  return Guarded("looking up rows", [&] { return LookUpRows(*this, source, keys, options); });
}

absl::StatusOr<std::vector<uint64_t>> SecondaryIndex::Count(const KeyQuery& keys,
                                                            const LookupOptions& options) const {
  return Guarded("counting entries", [&]() -> absl::StatusOr<std::vector<uint64_t>> {
    RangeColumn ranges;
    RETURN_IF_ERROR(PhysicalRanges(*this, keys, &ranges));
    std::vector<uint64_t> counts(ranges.size());
    RETURN_IF_ERROR(Count(ranges.Ranges(), absl::MakeSpan(counts),
                          StopCondition::Of(options).As<QueryOptions>()));
    return counts;
  });
}

absl::StatusOr<std::vector<bool>> SecondaryIndex::Contains(const KeyQuery& keys,
                                                           const LookupOptions& options) const {
  return Guarded("looking for keys", [&]() -> absl::StatusOr<std::vector<bool>> {
    RangeColumn ranges;
    RETURN_IF_ERROR(PhysicalRanges(*this, keys, &ranges));
    const QueryOptions query = StopCondition::Of(options).As<QueryOptions>();
    std::vector<bool> contains(ranges.size());
    if (ranges.is_keys()) {
      absl::FixedArray<bool> found(ranges.size());
      RETURN_IF_ERROR(Contains(ranges.Keys(), absl::MakeSpan(found), query));
      contains.assign(found.begin(), found.end());
    } else {
      uint64_t count = 0;
      RETURN_IF_ERROR(Count(ranges.Ranges(), absl::MakeSpan(&count, 1), query));
      contains[0] = count > 0;
    }
    return contains;
  });
}

}  // namespace cairn
