#include "engine/where/index_group.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/shards/open_index.h"
#include "engine/shards/shard_rows.h"
#include "engine/util/cursor_tag.h"
#include "engine/where/group_columns.h"
#include "engine/where/row_space.h"
#include "engine/where/where_node.h"
#include "engine/where/where_order.h"
#include "engine/where/where_plan.h"
#include "engine/where/where_search.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

class Group final : public WholeGroup {
 public:
  Group(std::vector<Member> members, GroupMembers group, std::shared_ptr<const RowSpace> space)
      : members_(std::move(members)),
        members_checksum_(ChecksumOf(members_)),
        group_(std::move(group)),
        space_(std::move(space)),
        search_(&group_, space_),
        columns_(&group_, space_) {
    for (size_t m = 0; m < group_.size(); ++m) {
      if (group_[m]->shard() == 0) first_of_.push_back(m);
    }
  }

  const std::shared_ptr<const RowSpace>& space() const override { return space_; }

  const std::vector<Member>& members() const override { return members_; }
  RowId end_row() const override { return space_->end_row(); }

  absl::StatusOr<uint64_t> Count(const Predicate& where, const WhereOptions& options,
                                 WherePlan* plan) const override {
    return Guarded("counting rows",
                   [&]() -> absl::StatusOr<uint64_t> { return DoCount(where, options, plan); });
  }
  absl::Status Find(const Predicate& where, const WhereOptions& options,
                    WhereResult* matches) const override {
    return Guarded("finding rows", [&] { return DoFind(where, options, matches); });
  }
  absl::Status FindOrdered(const Predicate& where, const WhereOptions& options, bool or_at,
                           uint64_t most, OrderedRows* found) const override {
    return DoFindOrdered(where, options, or_at, most, found);
  }
  absl::StatusOr<WherePlan> Explain(const Predicate& where,
                                    const WhereOptions& options) const override {
    return Guarded("planning a search", [&]() -> absl::StatusOr<WherePlan> {
      WhereGoal goal;
      ASSIGN_OR_RETURN(goal, GoalOf(options));
      ASSIGN_OR_RETURN(const WhereNode node,
                       ResolvePredicate(where, group_, end_row(), StopCondition::Of(options)));
      return PlanWhere(node, group_, search_, goal, options.strategy);
    });
  }

  absl::Status PrimaryKeys(RowSpan rows, StringList* primary_keys) const override {
    return Guarded("reading primary keys", [&]() -> absl::Status {
      std::vector<RowId> copy;
      ASSIGN_OR_RETURN(const absl::Span<const RowId> row_ids, RowsOfOneShard(rows, &copy));
      return space_->PrimaryKeys(row_ids, primary_keys);
    });
  }
  absl::Status Columns(RowSpan rows, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    return Guarded("reading included columns", [&]() -> absl::Status {
      std::vector<RowId> copy;
      ASSIGN_OR_RETURN(const absl::Span<const RowId> row_ids, RowsOfOneShard(rows, &copy));
      return ReadColumns(row_ids, names, {}, columns);
    });
  }
  absl::Status RowsOf(size_t member, RowSpan rows,
                      absl::Span<GlobalRowId> member_rows) const override {
    return Guarded("naming rows of an index", [&]() -> absl::Status {
      RETURN_IF_ERROR(CheckRowsOf(member, rows.size(), member_rows.size()));
      std::vector<RowId> copy;
      ASSIGN_OR_RETURN(const absl::Span<const RowId> row_ids, RowsOfOneShard(rows, &copy));
      RETURN_IF_ERROR(CheckRows(row_ids));
      const size_t first = first_of_[member];
      for (size_t i = 0; i < row_ids.size(); ++i) {
        member_rows[i] = kNoGlobalRow;
        for (size_t m = first; m < first + group_[first]->shards(); ++m) {
          const RowId local = space_->ToMember(m, row_ids[i]);
          if (local == kNoRow) continue;
          member_rows[i] = MakeGlobalRowId(static_cast<uint32_t>(m - first), local);
          break;
        }
      }
      return absl::OkStatus();
    });
  }

 private:
  absl::Status CheckRowsOf(size_t member, size_t rows, size_t places) const {
    if (member < members_.size() && rows == places) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat(
        "got member %d of %d, and space for %d of %d rows", member, members_.size(), places, rows));
  }
  absl::Status CheckRows(absl::Span<const RowId> rows) const {
    for (const RowId row : rows) {
      if (row < end_row()) continue;
      return absl::OutOfRangeError(
          absl::StrFormat("there is no row %d in the group; expected one of %d", row, end_row()));
    }
    return absl::OkStatus();
  }

  // Returns the number of the member's only or first shard.
  absl::StatusOr<size_t> MemberOf(const std::string& name) const {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].name == name) return first_of_[i];
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("WhereOptions::order_by: the group has no index %s", Quoted(name)));
  }

  absl::StatusOr<WhereGoal> GoalOf(const WhereOptions& options) const {
    WhereGoal goal;
    goal.limit = options.limit;
    if (!options.order_by.empty()) {
      ASSIGN_OR_RETURN(goal.order_by, MemberOf(options.order_by));
    }
    return goal;
  }

  absl::StatusOr<uint64_t> DoCount(const Predicate& where, const WhereOptions& options,
                                   WherePlan* plan_out) const {
    WhereGoal goal;
    goal.only_count = true;
    ASSIGN_OR_RETURN(const WhereNode node,
                     ResolvePredicate(where, group_, end_row(), StopCondition::Of(options)));
    ASSIGN_OR_RETURN(WherePlan plan, PlanWhere(node, group_, search_, goal, options.strategy));
    uint64_t count = 0;
    const StopCondition stop = StopCondition::Of(options);
    if (plan.strategy == WhereStrategy::kBitmap) {
      RowBitmap bitmap;
      RETURN_IF_ERROR(search_.Bitmap(node, &bitmap, stop));
      count = bitmap.Count();
    } else if (plan.strategy == WhereStrategy::kScan) {
      RETURN_IF_ERROR(search_.Scan(node, &count, nullptr, stop));
    } else if (node.kind == WhereNode::Kind::kLeaf && node.mode == WhereNode::Mode::kSome &&
               group_[node.member]->is_single()) {
      count = node.entries;
    } else {
      std::vector<RowId> rows;
      RETURN_IF_ERROR(search_.Gather(node, &rows, stop));
      count = rows.size();
    }
    if (plan_out != nullptr) *plan_out = std::move(plan);
    return count;
  }

  // Finds all rows, in any order.
  absl::Status FindAll(const WhereNode& node, WhereStrategy strategy, std::vector<RowId>* rows,
                       const StopCondition& stop) const {
    rows->clear();
    uint64_t count = 0;
    if (strategy == WhereStrategy::kScan) return search_.Scan(node, &count, rows, stop);
    if (strategy == WhereStrategy::kGather) return search_.Gather(node, rows, stop);
    RowBitmap bitmap;
    RETURN_IF_ERROR(search_.Bitmap(node, &bitmap, stop));
    bitmap.AppendTo(rows);
    return absl::OkStatus();
  }

  // Finds the rows for FindOrdered, and sets *order to their order, unless that is by primary key.
  absl::Status FindInOrder(const Predicate& where, const WhereOptions& options, bool or_at,
                           uint64_t most, std::vector<RowId>* rows, WherePlan* plan,
                           std::optional<WhereOrder>* order) const {
    WhereGoal goal;
    ASSIGN_OR_RETURN(goal, GoalOf(options));
    ASSIGN_OR_RETURN(const WhereNode node,
                     ResolvePredicate(where, group_, end_row(), StopCondition::Of(options)));
    ASSIGN_OR_RETURN(*plan, PlanWhere(node, group_, search_, goal, options.strategy));
    if (goal.order_by.has_value()) {
      absl::StatusOr<WhereOrder> made =
          WhereOrder::Create(group_, search_, *goal.order_by, options.order, options.after, or_at,
                             StopCondition::Of(options));
      if (!made.ok()) return made.status();
      order->emplace(*std::move(made));
    }
    if (plan->strategy == WhereStrategy::kWalk) return (*order)->Walk(node, most, rows);
    RETURN_IF_ERROR(FindAll(node, plan->strategy, rows, StopCondition::Of(options)));
    if (!order->has_value()) return SortByPrimaryKey(options, or_at, most, rows);
    return (*order)->Sort(most, rows);
  }

  absl::Status DoFindOrdered(const Predicate& where, const WhereOptions& options, bool or_at,
                             uint64_t most, OrderedRows* found) const {
    std::optional<WhereOrder> order;
    RETURN_IF_ERROR(FindInOrder(where, options, or_at, most, &found->rows, &found->plan, &order));
    if (order.has_value()) {
      found->keys.Clear(group_[*MemberOf(options.order_by)]->codec().kind());
      order->AppendKeys(found->rows, &found->keys);
    }
    found->primary_keys.Clear();
    return space_->PrimaryKeys(found->rows, &found->primary_keys);
  }

  absl::Status DoFind(const Predicate& where, const WhereOptions& given,
                      WhereResult* matches) const {
    WhereOptions options = given;
    ASSIGN_OR_RETURN(options.after, PlaceOfCursor(members_checksum_, where, given));
    matches->cursor.clear();
    matches->shards.clear();
    std::vector<RowId>& rows = matches->row_ids;
    // One more row than requested shows whether there are more.
    const uint64_t most = options.limit == UINT64_MAX ? UINT64_MAX : options.limit + 1;
    std::optional<WhereOrder> order;
    RETURN_IF_ERROR(FindInOrder(where, options, false, most, &rows, &matches->plan, &order));
    if (rows.size() > options.limit) {
      rows.pop_back();
      if (!rows.empty()) {
        ASSIGN_OR_RETURN(const std::string place, order.has_value()
                                                      ? order->CursorBehind(rows.back())
                                                      : CursorBehind(rows.back()));
        matches->cursor = MakeCursor(members_checksum_, where, options, place);
      }
    }
    return ReadColumns(rows, options.columns, StopCondition::Of(options), &matches->columns);
  }

  absl::Status ReadColumns(absl::Span<const RowId> rows, absl::Span<const std::string> names,
                           const StopCondition& stop, std::vector<ColumnValues>* columns) const {
    RETURN_IF_ERROR(CheckRows(rows));
    columns->clear();
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(const GroupColumns::Column column, columns_.Find(name));
      RETURN_IF_ERROR(columns_.Read(rows, column, stop, &columns->emplace_back()));
    }
    return absl::OkStatus();
  }

  absl::Status SortByPrimaryKey(const WhereOptions& options, bool or_at, uint64_t most,
                                std::vector<RowId>* rows) const {
    search_.Sort(rows);
    if (options.order == Order::kDescending) std::reverse(rows->begin(), rows->end());
    if (!options.after.empty()) {
      if (options.after[0] != kByPrimaryKey) {
        return absl::InvalidArgumentError("WhereOptions::after: expected a cursor of this order");
      }
      ASSIGN_OR_RETURN(const RowSpace::Place place,
                       space_->PlaceOf(std::string_view(options.after).substr(1)));
      const auto behind = std::find_if(rows->begin(), rows->end(), [&](RowId row) {
        const int compared = space_->Compare(row, place);
        if (compared == 0) return or_at;
        return (options.order == Order::kDescending) == (compared < 0);
      });
      rows->erase(rows->begin(), behind);
    }
    rows->resize(std::min<uint64_t>(rows->size(), most));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> CursorBehind(RowId row) const {
    StringList keys;
    RETURN_IF_ERROR(space_->PrimaryKeys(absl::MakeConstSpan(&row, 1), &keys));
    return std::string(1, kByPrimaryKey).append(keys[0]);
  }

  const std::vector<Member> members_;
  const uint64_t members_checksum_;
  const GroupMembers group_;      // one element per shard of each member
  std::vector<size_t> first_of_;  // first element of each member in group_
  const std::shared_ptr<const RowSpace> space_;
  const WhereSearch search_;
  const GroupColumns columns_;
};

// Returns the tag of a query's cursors.
CursorTag TagOf(uint64_t members, const Predicate& where, const WhereOptions& options) {
  return CursorTag::OfText(absl::StrCat("rows\n", members, "\n",
                                        options.order == Order::kDescending ? "desc\n" : "asc\n",
                                        options.order_by, "\n", where.ToString()));
}

}  // namespace

uint64_t ChecksumOf(const std::vector<IndexGroup::Member>& members) {
  uint64_t sum = 0;
  for (const IndexGroup::Member& member : members) {
    const std::optional<IndexVersions> open = VersionsOf(*member.index);
    const uint64_t spec = open.has_value() ? open->versions[0]->base->cursor_checksum
                                           : CursorTag::OfIndex(member.index->spec());
    const uint64_t sources =
        open.has_value() && open->by_source ? SourcesChecksum(open->versions) : 0;
    sum += CursorTag::OfText(absl::StrCat(spec, "\n", sources, "\n", member.name)).checksum();
  }
  return sum;
}

std::string MakeCursor(uint64_t members, const Predicate& where, const WhereOptions& options,
                       std::string_view place) {
  return TagOf(members, where, options).Add(place);
}

absl::StatusOr<std::string> PlaceOfCursor(uint64_t members, const Predicate& where,
                                          const WhereOptions& options) {
  if (options.after.empty()) return std::string();
  ASSIGN_OR_RETURN(const std::string_view place,
                   TagOf(members, where, options).Remove(options.after, "WhereOptions::after"));
  return std::string(place);
}

std::shared_ptr<const WholeGroup> MakeWholeGroup(std::vector<IndexGroup::Member> members,
                                                 GroupMembers group,
                                                 std::shared_ptr<const RowSpace> space) {
  return std::make_shared<const Group>(std::move(members), std::move(group), std::move(space));
}

}  // namespace cairn
