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
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"
#include "engine/shards/open_index.h"
#include "engine/version/distinct_rows.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/range_column.h"

namespace cairn {

// The memory of a lookup and of its result.
template <typename Result>
struct LookupMemory : LookupResult<Result>::Contents {
  // Returns the memory of an earlier result, unless a copy of it exists. The result is then empty.
  static std::shared_ptr<LookupMemory> Of(LookupResult<Result>* result) {
    auto contents = std::move(result->contents_);
    if (contents == nullptr || contents.use_count() > 1) return std::make_shared<LookupMemory>();
    // Synchronizes with the release of copies by other threads, which use_count() does not.
    std::shared_ptr<const void>(contents).reset();
    return std::static_pointer_cast<LookupMemory>(std::move(contents));
  }
  static void Return(std::shared_ptr<LookupMemory> memory, LookupResult<Result>* result) {
    result->contents_ = std::move(memory);
  }

  RangeColumn ranges;
};

namespace {

absl::Status OfIndex(const SecondaryIndex& index, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrFormat("index '%s', %s", index.spec().name, status.message()));
}

// Completes the message about an invalid cursor, which begins with "after".
absl::Status OfCursor(const SecondaryIndex& index, const LookupOptions& options,
                      const absl::Status& status) {
  if (options.after.empty() || !absl::StartsWith(status.message(), "after")) return status;
  return OfIndex(index,
                 absl::Status(status.code(), absl::StrCat("LookupOptions::", status.message())));
}

absl::Status PhysicalRanges(const SecondaryIndex& index, const KeyQuery& query,
                            RangeColumn* ranges) {
  const absl::Status s = RangesOf(query, index.codec(), ranges);
  return s.ok() ? s : OfIndex(index, s);
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
  if (!options.after.empty()) ranges->GoOnAfter(options.after);
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
template <typename Result>
absl::Status FindKeys(const SecondaryIndex& version, const KeyQuery& query,
                      const LookupOptions& options, LookupMemory<Result>* memory) {
  RETURN_IF_ERROR(PhysicalRanges(version, query, options, &memory->ranges));
  RETURN_IF_ERROR(
      OfCursor(version, options, FindRows(version, &memory->ranges, options, &memory->matches)));
  memory->primary_keys.Clear();
  return ForEachStoppable(memory->matches.row_ids.size(), StopCondition::Of(options),
                          [&](size_t first, size_t count) {
                            return version.PrimaryKeys(RowSpan(memory->matches).Slice(first, count),
                                                       &memory->primary_keys);
                          });
}

absl::Status CheckHasNoColumns(const LookupOptions& options) {
  if (options.columns.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "LookupRows returns whole rows without columns; use Lookup for columns");
}

}  // namespace

absl::Status LookUpKeys(const SecondaryIndex& version, const KeyQuery& query,
                        const LookupOptions& options, FoundKeys* found) {
  auto memory = LookupMemory<std::string_view>::Of(found);
  RETURN_IF_ERROR(FindKeys(version, query, options, memory.get()));
  if (!options.columns.empty()) {
    RETURN_IF_ERROR(StopCondition::Of(options).Check());
    RETURN_IF_ERROR(version.Columns(memory->matches, options.columns, &memory->matches.columns));
  }
  memory->results.clear();
  memory->results.reserve(memory->primary_keys.size());
  for (std::string_view primary_key : memory->primary_keys) {
    memory->results.push_back(primary_key);
  }
  LookupMemory<std::string_view>::Return(std::move(memory), found);
  return absl::OkStatus();
}

absl::Status LookUpRows(const SecondaryIndex& version, ReadValuesOf read, const KeyQuery& query,
                        const LookupOptions& options, FoundRows* found) {
  RETURN_IF_ERROR(CheckHasNoColumns(options));
  auto memory = LookupMemory<FoundRow>::Of(found);
  RETURN_IF_ERROR(FindKeys(version, query, options, memory.get()));
  std::vector<size_t> value_of;
  memory->values.Clear();
  RETURN_IF_ERROR(read(memory->primary_keys, &memory->values, &value_of));
  memory->results.clear();
  memory->results.reserve(value_of.size());
  uint64_t begin = 0;
  for (uint64_t& end : absl::MakeSpan(memory->matches.offsets).subspan(1)) {
    for (uint64_t i = begin; i < end; ++i) {
      if (value_of[i] == SIZE_MAX) continue;
      memory->results.push_back({memory->primary_keys[i], memory->values[value_of[i]]});
    }
    begin = end;
    end = memory->results.size();
  }
  LookupMemory<FoundRow>::Return(std::move(memory), found);
  return absl::OkStatus();
}

absl::Status LookUpRows(const SecondaryIndex& version, const SnapshotSource& rows,
                        const KeyQuery& query, const LookupOptions& options, FoundRows* found) {
  RETURN_IF_ERROR(CheckHasNoColumns(options));
  auto memory = LookupMemory<FoundRow>::Of(found);
  RETURN_IF_ERROR(PhysicalRanges(version, query, options, &memory->ranges));
  FetchResult fetched;
  RETURN_IF_ERROR(
      OfCursor(version, options,
               version.Fetch(rows, memory->ranges.Ranges(), ScanOptions(options), &fetched)));
  memory->matches.offsets = std::move(fetched.offsets);
  memory->matches.cursors = std::move(fetched.cursors);
  memory->primary_keys = std::move(fetched.primary_keys);
  memory->values = std::move(fetched.values);
  memory->results.clear();
  memory->results.reserve(memory->primary_keys.size());
  for (size_t i = 0; i < memory->primary_keys.size(); ++i) {
    memory->results.push_back({memory->primary_keys[i], memory->values[i]});
  }
  LookupMemory<FoundRow>::Return(std::move(memory), found);
  return absl::OkStatus();
}

absl::StatusOr<FoundKeys> SecondaryIndex::Lookup(const KeyQuery& keys,
                                                 const LookupOptions& options) const {
  FoundKeys found;
  RETURN_IF_ERROR(Lookup(keys, options, &found));
  return found;
}

absl::StatusOr<FoundRows> SecondaryIndex::LookupRows(const SnapshotSource& source,
                                                     const KeyQuery& keys,
                                                     const LookupOptions& options) const {
  return Guarded("looking up rows", [&]() -> absl::StatusOr<FoundRows> {
    RETURN_IF_ERROR(CheckHasOwnState(options));
    FoundRows found;
    RETURN_IF_ERROR(LookUpRows(*this, source, keys, options, &found));
    return found;
  });
}

absl::StatusOr<std::vector<uint64_t>> SecondaryIndex::Count(const KeyQuery& keys,
                                                            const LookupOptions& options) const {
  return Guarded("counting entries", [&]() -> absl::StatusOr<std::vector<uint64_t>> {
    RETURN_IF_ERROR(CheckHasOwnState(options));
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
    RETURN_IF_ERROR(CheckHasOwnState(options));
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
