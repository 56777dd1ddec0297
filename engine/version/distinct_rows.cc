#include "engine/version/distinct_rows.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cairn/column.h"
#include "engine/version/row_entries.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"
#include "index/query/physical_key.h"
#include "index/query/range_column.h"

namespace cairn {
namespace {

using Versions = absl::Span<const std::shared_ptr<const IndexVersion>>;

// The min and max number of entries that are read at a time.
constexpr uint64_t kFirstStep = 64, kMaxStep = 16384;

// Finds the entries of a row in all shards of an index.
template <typename Key>
class EntriesOfRows {
 public:
  EntriesOfRows(Versions versions, bool by_source)
      : versions_(versions), by_source_(by_source), entries_(versions.size()) {}

  // Whether the row has a key in range i that comes before `key`.
  absl::StatusOr<bool> HasBefore(size_t shard, RowId row, std::string_view primary_key,
                                 const Key& key, const RangeBatch& ranges, size_t i, Order order) {
    for (size_t s = 0; s < versions_.size(); ++s) {
      if (by_source_ && s != shard) continue;
      ASSIGN_OR_RETURN(const RowEntries* const entries, Entries(s));
      RowId there = row;
      if (s != shard) {
        // In an index sharded by key range, all rows of a shard are its base's.
        ASSIGN_OR_RETURN(there, versions_[s]->delta->base_rows.Find(primary_key));
      }
      if (there == kNoRow) continue;
      places_.clear();
      entries->AppendPlaces(there, &places_);
      for (const RowEntries::Place& place : places_) {
        const Delta& delta = *versions_[s]->delta;
        const SortedRun& run =
            place.run == 0 ? delta.base_run : delta.parts[place.run - 1].segment->run();
        const Key other = ColumnOf<Key>(run)[place.position];
        const bool before = order == Order::kAscending ? other < key : key < other;
        if (before && IsWithin<Key>(other, ranges, i)) return true;
      }
    }
    return false;
  }

 private:
  absl::StatusOr<const RowEntries*> Entries(size_t s) {
    if (!entries_[s].has_value()) {
      ASSIGN_OR_RETURN(RowEntries entries, RowEntries::Of(*versions_[s]));
      entries_[s].emplace(std::move(entries));
    }
    return &*entries_[s];
  }

  const Versions versions_;
  const bool by_source_;
  std::vector<std::optional<RowEntries>> entries_;  // one per shard, created on first use
  RowEntries::Places places_;
};

// Whether range i has only one key, for which a row has one entry.
template <typename Key>
bool IsOfOneKey(const RangeBatch& ranges, size_t i) {
  return ranges.lower_bound_of(i) == Bound::kInclusive &&
         ranges.upper_bound_of(i) == Bound::kInclusive &&
         ranges.lower.as<Key>()[i] == ranges.upper.as<Key>()[i];
}

template <typename Key>
class DistinctScan {
 public:
  DistinctScan(Versions versions, bool by_source,
               absl::FunctionRef<absl::Status(const Batch&)> scan, const RangeBatch& ranges,
               const QueryOptions& options, FindResult* matches)
      : versions_(versions),
        ids_name_rows_(versions.size() == 1 || by_source),
        scan_(scan),
        ranges_(ranges),
        limit_(options.limit),
        matches_(*matches),
        entries_(versions, by_source) {
    options_ = StopCondition::Of(options).As<QueryOptions>();
    options_.order = options.order;
    options_.with_keys = true;
    options_.route = options.route;
  }

  absl::Status TakeRange(size_t i) {
    std::string after = ranges_.after.empty() ? "" : ranges_.after[i];
    const bool from_start = after.empty();
    std::string cursor;  // the cursor after the last row of the page
    uint64_t rows = 0;
    bool more = false;
    std::unordered_set<GlobalRowId> seen;
    std::unordered_set<std::string> seen_keys;  // used instead if ids do not identify rows
    for (uint64_t step = std::clamp(limit_, kFirstStep, kMaxStep); !more;
         step = std::min(2 * step, kMaxStep)) {
      RETURN_IF_ERROR(ScanFrom(i, after, step));
      for (size_t j = 0; j < page_.row_ids.size() && !more; ++j) {
        const RowId row = page_.row_ids[j];
        const size_t shard = page_.shards.empty() ? 0 : page_.shards[j];
        const bool is_new = ids_name_rows_ ? seen.insert(page_.row(j)).second
                                           : seen_keys.insert(std::string(primary_keys_[j])).second;
        if (!is_new) continue;
        if (!from_start) {
          ASSIGN_OR_RETURN(
              const bool came_before,
              entries_.HasBefore(shard, row, ids_name_rows_ ? std::string_view() : primary_keys_[j],
                                 KeyAt<Key>(page_.keys, j), ranges_, i, options_.order));
          if (came_before) continue;
        }
        more = rows == limit_;
        if (more) break;
        matches_.row_ids.push_back(row);
        if (!page_.shards.empty()) matches_.shards.push_back(page_.shards[j]);
        if (++rows < limit_) continue;
        cursor = page_.cursors[0];
        if (j + 1 == page_.row_ids.size()) continue;
        QueryOptions upto = options_;
        upto.limit = j + 1;
        RETURN_IF_ERROR(Scan(i, after, upto, &upto_));
        cursor = upto_.cursors[0];
      }
      if (page_.cursors[0].empty()) break;
      after = page_.cursors[0];
    }
    matches_.offsets.push_back(matches_.row_ids.size());
    matches_.cursors.push_back(more ? cursor : std::string());
    return absl::OkStatus();
  }

 private:
  absl::Status Scan(size_t i, const std::string& after, const QueryOptions& options,
                    FindResult* matches) {
    RangeBatch range = ranges_;
    range.after = {};
    range = range.Slice(i, 1);
    if (!after.empty()) range.after = absl::MakeConstSpan(&after, 1);
    return scan_(Batch::Scan(range, matches, options));
  }
  absl::Status ScanFrom(size_t i, const std::string& after, uint64_t entries) {
    options_.limit = entries;
    RETURN_IF_ERROR(Scan(i, after, options_, &page_));
    if (ids_name_rows_) return absl::OkStatus();
    // Shard by shard, then in the order of the page.
    std::vector<StringList> of_shards(versions_.size());
    for (size_t s = 0; s < versions_.size(); ++s) {
      std::vector<RowId> rows;
      for (size_t j = 0; j < page_.row_ids.size(); ++j) {
        if (page_.shards[j] == s) rows.push_back(page_.row_ids[j]);
      }
      RETURN_IF_ERROR(versions_[s]->delta->PrimaryKeys(rows, &of_shards[s]));
    }
    primary_keys_.Clear();
    std::vector<size_t> next(versions_.size());
    for (const uint32_t s : page_.shards) primary_keys_.Append(of_shards[s][next[s]++]);
    return absl::OkStatus();
  }

  const Versions versions_;
  const bool ids_name_rows_;  // each row has one id
  const absl::FunctionRef<absl::Status(const Batch&)> scan_;
  const RangeBatch& ranges_;
  const uint64_t limit_;
  QueryOptions options_;
  FindResult& matches_;
  FindResult page_, upto_;
  StringList primary_keys_;  // of the page's rows, if ids do not identify them
  EntriesOfRows<Key> entries_;
};

}  // namespace

bool MayHaveSeveralKeys(const IndexSpec& spec) {
  return std::any_of(spec.parts.begin(), spec.parts.end(), [](const KeyPart& part) {
    return part.source.kind == KeySource::Kind::kJson ||
           part.source.kind == KeySource::Kind::kCustom;
  });
}

absl::Status ScanDistinctRows(absl::Span<const std::shared_ptr<const IndexVersion>> versions,
                              bool by_source, absl::FunctionRef<absl::Status(const Batch&)> scan,
                              const RangeBatch& ranges, const QueryOptions& options,
                              FindResult* matches) {
  const bool in_pages = options.limit != QueryOptions().limit || !ranges.after.empty();
  RangeBatch whole = ranges;
  whole.after = {};
  RETURN_IF_ERROR(CheckQueries(versions[0]->base->codec.kind(), Batch::Scan(whole, nullptr)));
  return WithPhysicalKey(ranges.kind(), [&](auto type) -> absl::Status {
    using Key = typename decltype(type)::type;
    bool repeats = in_pages && options.limit != 0 && MayHaveSeveralKeys(versions[0]->spec()) &&
                   (ranges.after.empty() || ranges.after.size() == ranges.size());
    bool of_one_key = true;
    for (size_t i = 0; i < ranges.size() && repeats && of_one_key; ++i) {
      of_one_key = IsOfOneKey<Key>(ranges, i);
    }
    repeats = repeats && !of_one_key;
    if (!repeats) return scan(Batch::Scan(ranges, matches, options));
    RETURN_IF_ERROR(BeginMatches(ranges.kind(), 0, matches));
    matches->offsets.assign(1, 0);
    DistinctScan<Key> distinct(versions, by_source, scan, ranges, options, matches);
    for (size_t i = 0; i < ranges.size(); ++i) RETURN_IF_ERROR(distinct.TakeRange(i));
    return absl::OkStatus();
  });
}

}  // namespace cairn
