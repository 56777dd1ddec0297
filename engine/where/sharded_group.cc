// Groups of indexes with several sources. Each source is queried as a group of its own.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/shards/shard_rows.h"
#include "engine/where/index_group.h"
#include "engine/where/where_order.h"
#include "engine/where/where_plan.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/batch_check.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

absl::Status InShard(size_t shard, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrFormat("shard %d: %s", shard, std::string(status.message())));
}

// A cursor: the shard of the row before it (4 bytes, little-endian), then that shard's own cursor.
struct ShardCursor {
  uint32_t shard = 0;
  std::string_view of_shard;

  static absl::StatusOr<ShardCursor> Decode(std::string_view text, size_t shards) {
    ShardCursor cursor;
    if (text.size() <= sizeof cursor.shard) {
      return absl::InvalidArgumentError(
          "WhereOptions::after: expected a cursor of a sharded group");
    }
    for (size_t i = 0; i < sizeof cursor.shard; ++i) {
      cursor.shard |= uint32_t{static_cast<uint8_t>(text[i])} << (8 * i);
    }
    if (cursor.shard >= shards) {
      return absl::InvalidArgumentError(
          absl::StrFormat("WhereOptions::after: cursor of shard %d, but the group has %d shards",
                          cursor.shard, shards));
    }
    cursor.of_shard = text.substr(sizeof cursor.shard);
    return cursor;
  }
  std::string Encode() const {
    std::string text;
    for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<char>(shard >> shift));
    return text.append(of_shard);
  }
};

// Number of rows that are merged between two checks of the flag.
constexpr size_t kMergedTogether = 4096;

// The next row of a shard.
struct Head {
  uint32_t shard;
  size_t at;
};

// Adds the plan of another shard. `places` are those of comparisons in `plan`.
void AddPlan(WherePlan more, double max_rows, PlanPlaces* places, WherePlan* plan) {
  if (more.expected_rows > max_rows) plan->strategy = more.strategy;
  plan->expected_rows += more.expected_rows;
  for (WherePlan::Comparison& comparison : more.comparisons) {
    AddComparison(std::move(comparison), places, plan);
  }
  for (const WherePlan::Candidate& candidate : more.candidates) {
    const auto same = std::find_if(
        plan->candidates.begin(), plan->candidates.end(),
        [&](const WherePlan::Candidate& other) { return other.strategy == candidate.strategy; });
    if (same == plan->candidates.end()) {
      plan->candidates.push_back(candidate);
    } else {
      same->predicted += candidate.predicted;
    }
  }
}

// Merges the plans of all shards. The strategy is that of the shard with the most rows.
WherePlan PlanOf(std::vector<WherePlan> plans) {
  WherePlan all;
  all.strategy = plans[0].strategy;
  PlanPlaces places;
  double max_rows = plans[0].expected_rows;
  for (WherePlan& plan : plans) {
    const double rows = plan.expected_rows;
    AddPlan(std::move(plan), max_rows, &places, &all);
    max_rows = std::max(max_rows, rows);
  }
  std::stable_sort(all.candidates.begin(), all.candidates.end(),
                   [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  return all;
}

class ShardedGroup final : public IndexGroup {
 public:
  ShardedGroup(std::vector<Member> members, std::vector<std::shared_ptr<const WholeGroup>> shards)
      : members_(std::move(members)),
        members_checksum_(ChecksumOf(members_)),
        shards_(std::move(shards)) {}

  const std::vector<Member>& members() const override { return members_; }
  bool in_shards() const override { return true; }
  RowId end_row() const override {
    RowId end = 0;
    for (const auto& shard : shards_) end = std::max(end, shard->end_row());
    return end;
  }

  absl::StatusOr<uint64_t> Count(const Predicate& where, const WhereOptions& options,
                                 WherePlan* plan) const override {
    return Guarded("counting rows", [&]() -> absl::StatusOr<uint64_t> {
      uint64_t count = 0;
      std::vector<WherePlan> plans(shards_.size());
      for (size_t s = 0; s < shards_.size(); ++s) {
        const absl::StatusOr<uint64_t> of_shard = shards_[s]->Count(where, options, &plans[s]);
        if (!of_shard.ok()) return InShard(s, of_shard.status());
        count += *of_shard;
      }
      if (plan != nullptr) *plan = PlanOf(std::move(plans));
      return count;
    });
  }
  absl::Status Find(const Predicate& where, const WhereOptions& options,
                    WhereResult* matches) const override {
    return Guarded("finding rows", [&] { return DoFind(where, options, matches); });
  }
  absl::StatusOr<WherePlan> Explain(const Predicate& where,
                                    const WhereOptions& options) const override {
    return Guarded("planning a search", [&]() -> absl::StatusOr<WherePlan> {
      std::vector<WherePlan> plans;
      for (size_t s = 0; s < shards_.size(); ++s) {
        absl::StatusOr<WherePlan> plan = shards_[s]->Explain(where, options);
        if (!plan.ok()) return InShard(s, plan.status());
        plans.push_back(*std::move(plan));
      }
      return PlanOf(std::move(plans));
    });
  }

  absl::Status PrimaryKeys(RowSpan rows, StringList* primary_keys) const override {
    return Guarded("reading primary keys", [&]() -> absl::Status {
      std::vector<std::vector<RowId>> row_ids;
      RETURN_IF_ERROR(GroupByShard(rows, shards_.size(), &row_ids));
      std::vector<StringList> of_shards(shards_.size());
      for (size_t s = 0; s < shards_.size(); ++s) {
        RETURN_IF_ERROR(InShard(s, shards_[s]->PrimaryKeys({row_ids[s], {}}, &of_shards[s])));
      }
      JoinPrimaryKeys(rows, of_shards, primary_keys);
      return absl::OkStatus();
    });
  }
  absl::Status Columns(RowSpan rows, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    return Guarded("reading included columns", [&]() -> absl::Status {
      std::vector<std::vector<RowId>> row_ids;
      RETURN_IF_ERROR(GroupByShard(rows, shards_.size(), &row_ids));
      std::vector<std::vector<ColumnValues>> of_shards(shards_.size());
      for (size_t s = 0; s < shards_.size(); ++s) {
        RETURN_IF_ERROR(InShard(s, shards_[s]->Columns({row_ids[s], {}}, names, &of_shards[s])));
      }
      JoinColumns(rows, of_shards, columns);
      return absl::OkStatus();
    });
  }
  absl::Status RowsOf(size_t member, RowSpan rows,
                      absl::Span<GlobalRowId> member_rows) const override {
    return Guarded("naming rows of an index", [&]() -> absl::Status {
      if (member >= members_.size() || rows.size() != member_rows.size()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("got member %d of %d, and space for %d of %d rows", member,
                            members_.size(), member_rows.size(), rows.size()));
      }
      std::vector<std::vector<RowId>> row_ids;
      RETURN_IF_ERROR(GroupByShard(rows, shards_.size(), &row_ids));
      std::vector<std::vector<GlobalRowId>> of_shards(shards_.size());
      for (size_t s = 0; s < shards_.size(); ++s) {
        of_shards[s].resize(row_ids[s].size());
        RETURN_IF_ERROR(
            InShard(s, shards_[s]->RowsOf(member, {row_ids[s], {}}, absl::MakeSpan(of_shards[s]))));
      }
      std::vector<size_t> next(shards_.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const uint32_t shard = ShardOf(rows[i]);
        const GlobalRowId row = of_shards[shard][next[shard]++];
        member_rows[i] = row == kNoGlobalRow ? row : MakeGlobalRowId(shard, RowInShard(row));
      }
      return absl::OkStatus();
    });
  }

 private:
  absl::Status DoFind(const Predicate& where, const WhereOptions& given,
                      WhereResult* matches) const {
    WhereOptions options = given;
    ASSIGN_OR_RETURN(options.after, PlaceOfCursor(members_checksum_, where, given));
    const uint64_t most = options.limit == UINT64_MAX ? UINT64_MAX : options.limit + 1;
    ShardCursor cursor;
    if (!options.after.empty()) {
      ASSIGN_OR_RETURN(cursor, ShardCursor::Decode(options.after, shards_.size()));
    }
    const bool reversed = IsReversed(options, cursor.of_shard);
    std::vector<OrderedRows> found(shards_.size());
    std::vector<WherePlan> plans(shards_.size());
    for (uint32_t s = 0; s < shards_.size(); ++s) {
      WhereOptions of_shard = options;
      of_shard.after = std::string(cursor.of_shard);
      // Rows at the cursor's place that are in shards after the cursor's shard have not been
      // returned yet.
      const bool or_at = reversed ? s < cursor.shard : s > cursor.shard;
      RETURN_IF_ERROR(InShard(s, shards_[s]->FindOrdered(where, of_shard, or_at, most, &found[s])));
      plans[s] = std::move(found[s].plan);
    }
    matches->plan = PlanOf(std::move(plans));
    matches->row_ids.clear();
    matches->shards.clear();
    matches->cursor.clear();
    const PhysicalType kind = found[0].keys.kind();
    RETURN_IF_ERROR(WithPhysicalKey(kind, [&](auto type) {
      return Merge<typename decltype(type)::type>(found, options, most, matches);
    }));
    const bool found_more = matches->row_ids.size() > options.limit;
    if (found_more) {
      matches->row_ids.pop_back();
      matches->shards.pop_back();
    }
    if (found_more && !matches->row_ids.empty()) {
      const uint32_t shard = matches->shards.back();
      const size_t at = static_cast<size_t>(
          std::count(matches->shards.begin(), matches->shards.end(), shard) - 1);
      const std::string behind = CursorBehind(found[shard], at, options);
      matches->cursor =
          MakeCursor(members_checksum_, where, options, ShardCursor{shard, behind}.Encode());
    }
    return Columns(*matches, options.columns, &matches->columns);
  }

  // Returns whether rows at one place are in descending order of shards.
  static bool IsReversed(const WhereOptions& options, std::string_view cursor) {
    return options.order == Order::kDescending && (cursor.empty() || cursor[0] != kOfAbsent);
  }

  // Returns the shard's own cursor after a row that it has found.
  static std::string CursorBehind(const OrderedRows& found, size_t at,
                                  const WhereOptions& options) {
    const std::string_view primary_key = found.primary_keys[at];
    if (options.order_by.empty()) return std::string(1, kByPrimaryKey).append(primary_key);
    return WhereCursor(found.keys, at, primary_key);
  }

  template <typename Key>
  absl::Status Merge(const std::vector<OrderedRows>& found, const WhereOptions& options,
                     uint64_t most, WhereResult* matches) const {
    const bool descending = options.order == Order::kDescending;
    const bool by_key = !options.order_by.empty();
    // Returns whether b precedes a, so the first row is on top of the heap.
    const auto later = [&](const Head& a, const Head& b) {
      const OrderedRows& x = found[a.shard];
      const OrderedRows& y = found[b.shard];
      const bool x_has_key = a.at < x.keys.size(), y_has_key = b.at < y.keys.size();
      bool reversed = descending;
      if (by_key) {
        if (x_has_key != y_has_key) return y_has_key;
        if (x_has_key) {
          const Key key_a = KeyAt<Key>(x.keys, a.at), key_b = KeyAt<Key>(y.keys, b.at);
          if (key_a != key_b) return reversed == (key_a < key_b);
        } else {
          reversed = false;  // rows without a key are in primary-key order
        }
      }
      const int compared = x.primary_keys[a.at].compare(y.primary_keys[b.at]);
      if (compared != 0) return reversed == (compared < 0);
      return reversed == (a.shard < b.shard);
    };
    std::priority_queue heads(later, std::vector<Head>());
    for (uint32_t s = 0; s < found.size(); ++s) {
      if (!found[s].rows.empty()) heads.push({s, 0});
    }
    while (!heads.empty() && matches->row_ids.size() < most) {
      if (matches->row_ids.size() % kMergedTogether == 0) {
        RETURN_IF_ERROR(StopCondition::Of(options).Check());
      }
      Head head = heads.top();
      heads.pop();
      matches->row_ids.push_back(found[head.shard].rows[head.at]);
      matches->shards.push_back(head.shard);
      if (++head.at < found[head.shard].rows.size()) heads.push(head);
    }
    return absl::OkStatus();
  }

  const std::vector<Member> members_;
  const uint64_t members_checksum_;
  const std::vector<std::shared_ptr<const WholeGroup>> shards_;
};

}  // namespace

std::shared_ptr<const IndexGroup> OverShards(
    std::vector<IndexGroup::Member> members,
    std::vector<std::shared_ptr<const WholeGroup>> shards) {
  return std::make_shared<const ShardedGroup>(std::move(members), std::move(shards));
}

}  // namespace cairn
