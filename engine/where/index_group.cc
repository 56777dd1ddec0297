#include "engine/where/index_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "engine/serve/open_index.h"
#include "engine/where/group_columns.h"
#include "engine/where/row_space.h"
#include "engine/where/where_node.h"
#include "engine/where/where_order.h"
#include "engine/where/where_plan.h"
#include "engine/where/where_search.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// What a cursor of rows by primary key begins with.
constexpr char kByPrimaryKey = 'p';

class Group final : public IndexGroup {
 public:
  Group(std::vector<Member> members, GroupMembers group, std::shared_ptr<const RowSpace> space)
      : members_(std::move(members)),
        group_(std::move(group)),
        space_(std::move(space)),
        search_(&group_, space_),
        columns_(&group_, space_) {}

  const std::shared_ptr<const RowSpace>& space() const { return space_; }

  const std::vector<Member>& members() const override { return members_; }
  RowId end_row() const override { return space_->end_row(); }

  absl::StatusOr<uint64_t> Count(const Predicate& where, const WhereOptions& options,
                                 WherePlan* plan) const override {
    return Guarded("counting rows",
                   [&]() -> absl::StatusOr<uint64_t> { return DoCount(where, options, plan); });
  }
  absl::Status Find(const Predicate& where, const WhereOptions& options,
                    WhereMatches* matches) const override {
    return Guarded("finding rows", [&] { return DoFind(where, options, matches); });
  }
  absl::StatusOr<WherePlan> Explain(const Predicate& where,
                                    const WhereOptions& options) const override {
    return Guarded("planning a search", [&]() -> absl::StatusOr<WherePlan> {
      WhereGoal goal;
      ASSIGN_OR_RETURN(goal, GoalOf(options));
      ASSIGN_OR_RETURN(const WhereNode node, ResolvePredicate(where, group_, end_row()));
      return PlanWhere(node, group_, search_, goal, options.strategy);
    });
  }

  absl::Status PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys) const override {
    return Guarded("reading primary keys", [&] { return space_->PrimaryKeys(rows, primary_keys); });
  }
  absl::Status Columns(absl::Span<const RowId> rows, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    return Guarded("reading included columns", [&] {
      RETURN_IF_ERROR(CheckRows(rows));
      columns->clear();
      for (const std::string& name : names) {
        ASSIGN_OR_RETURN(const GroupColumns::Column column, columns_.Find(name));
        RETURN_IF_ERROR(columns_.Read(rows, column, &columns->emplace_back()));
      }
      return absl::OkStatus();
    });
  }
  absl::Status RowsOf(size_t member, absl::Span<const RowId> rows,
                      absl::Span<RowId> member_rows) const override {
    if (member >= members_.size() || rows.size() != member_rows.size()) {
      return absl::InvalidArgumentError(absl::StrFormat("rows of member %d of %d, %d rows for %d",
                                                        member, members_.size(), member_rows.size(),
                                                        rows.size()));
    }
    RETURN_IF_ERROR(CheckRows(rows));
    for (size_t i = 0; i < rows.size(); ++i) member_rows[i] = space_->ToMember(member, rows[i]);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckRows(absl::Span<const RowId> rows) const {
    for (const RowId row : rows) {
      if (row < end_row()) continue;
      return absl::OutOfRangeError(
          absl::StrFormat("there is no row %d in the group, only %d", row, end_row()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> MemberOf(const std::string& name) const {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].name == name) return i;
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("WhereOptions::order_by: the group has no index %s", Quoted(name)));
  }

  absl::StatusOr<WhereGoal> GoalOf(const WhereOptions& options) const {
    WhereGoal goal;
    if (options.limit == 0) {
      return absl::InvalidArgumentError(
          "WhereOptions::limit is 0: a search is for one row at least");
    }
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
    ASSIGN_OR_RETURN(const WhereNode node, ResolvePredicate(where, group_, end_row()));
    ASSIGN_OR_RETURN(WherePlan plan, PlanWhere(node, group_, search_, goal, options.strategy));
    uint64_t count = 0;
    if (plan.strategy == WhereStrategy::kBitmap) {
      RowBitmap bitmap;
      RETURN_IF_ERROR(search_.Bitmap(node, &bitmap));
      count = bitmap.Count();
    } else if (plan.strategy == WhereStrategy::kScan) {
      RETURN_IF_ERROR(search_.Scan(node, &count, nullptr));
    } else if (node.kind == WhereNode::Kind::kLeaf && node.mode == WhereNode::Mode::kSome &&
               group_[node.member]->is_single()) {
      count = node.entries;
    } else {
      std::vector<RowId> rows;
      RETURN_IF_ERROR(search_.Gather(node, &rows));
      count = rows.size();
    }
    if (plan_out != nullptr) *plan_out = std::move(plan);
    return count;
  }

  // All rows, in any order.
  absl::Status FindAll(const WhereNode& node, WhereStrategy strategy,
                       std::vector<RowId>* rows) const {
    rows->clear();
    uint64_t count = 0;
    if (strategy == WhereStrategy::kScan) return search_.Scan(node, &count, rows);
    if (strategy == WhereStrategy::kGather) return search_.Gather(node, rows);
    RowBitmap bitmap;
    RETURN_IF_ERROR(search_.Bitmap(node, &bitmap));
    bitmap.AppendTo(rows);
    return absl::OkStatus();
  }

  absl::Status DoFind(const Predicate& where, const WhereOptions& options,
                      WhereMatches* matches) const {
    WhereGoal goal;
    ASSIGN_OR_RETURN(goal, GoalOf(options));
    ASSIGN_OR_RETURN(const WhereNode node, ResolvePredicate(where, group_, end_row()));
    ASSIGN_OR_RETURN(matches->plan, PlanWhere(node, group_, search_, goal, options.strategy));
    matches->cursor.clear();
    std::vector<RowId>& rows = matches->rows;
    // One more than is wanted says whether there is one.
    const uint64_t most = options.limit == UINT64_MAX ? UINT64_MAX : options.limit + 1;
    std::optional<WhereOrder> order;
    if (goal.order_by.has_value()) {
      absl::StatusOr<WhereOrder> made =
          WhereOrder::Create(group_, search_, *goal.order_by, options.order, options.after);
      if (!made.ok()) return made.status();
      order.emplace(*std::move(made));
    }
    if (matches->plan.strategy == WhereStrategy::kWalk) {
      RETURN_IF_ERROR(order->Walk(node, most, &rows));
    } else {
      RETURN_IF_ERROR(FindAll(node, matches->plan.strategy, &rows));
      if (order.has_value()) {
        order->Sort(most, &rows);
      } else {
        RETURN_IF_ERROR(SortByPrimaryKey(options, most, &rows));
      }
    }
    if (rows.size() > options.limit) {
      rows.pop_back();
      ASSIGN_OR_RETURN(matches->cursor, order.has_value() ? order->CursorBehind(rows.back())
                                                          : CursorBehind(rows.back()));
    }
    return Columns(rows, options.columns, &matches->columns);
  }

  absl::Status SortByPrimaryKey(const WhereOptions& options, uint64_t most,
                                std::vector<RowId>* rows) const {
    search_.Sort(rows);
    if (options.order == Order::kDescending) std::reverse(rows->begin(), rows->end());
    if (!options.after.empty()) {
      if (options.after[0] != kByPrimaryKey) {
        return absl::InvalidArgumentError("WhereOptions::after: not a cursor of this order");
      }
      ASSIGN_OR_RETURN(const RowSpace::Place place,
                       space_->PlaceOf(std::string_view(options.after).substr(1)));
      const auto behind = std::find_if(rows->begin(), rows->end(), [&](RowId row) {
        const int compared = space_->Compare(row, place);
        return options.order == Order::kDescending ? compared < 0 : compared > 0;
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
  const GroupMembers group_;
  const std::shared_ptr<const RowSpace> space_;
  const WhereSearch search_;
  const GroupColumns columns_;
};

absl::Status CheckTogether(const IndexGroup::Member& a, const IndexVersion& x,
                           const IndexGroup::Member& b, const IndexVersion& y) {
  const auto differ = [&](const char* what, const std::string& of_a, const std::string& of_b) {
    return absl::FailedPreconditionError(
        absl::StrFormat("indexes '%s' and '%s' are of different %s: %s and %s", a.name, b.name,
                        what, of_a.empty() ? "none" : of_a, of_b.empty() ? "none" : of_b));
  };
  const Manifest& m = x.base->manifest;
  const Manifest& n = y.base->manifest;
  if (m.column_family != n.column_family) {
    return differ("column families", Quoted(m.column_family), Quoted(n.column_family));
  }
  if (!m.database_id.empty() && !n.database_id.empty() && m.database_id != n.database_id) {
    return differ("databases", m.database_id, n.database_id);
  }
  if (x.sequence != y.sequence) {
    return differ("states of the database", absl::StrCat("sequence number ", x.sequence),
                  absl::StrCat(y.sequence, "; catch them up to one state"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const IndexGroup>> CreateIndexGroup(
    std::vector<IndexGroup::Member> members, const std::shared_ptr<const IndexGroup>& after) {
  if (members.empty()) return absl::InvalidArgumentError("a group of no indexes");
  std::vector<std::shared_ptr<const IndexVersion>> versions;
  GroupMembers group;
  for (IndexGroup::Member& member : members) {
    if (member.index == nullptr) return absl::InvalidArgumentError("a group with a null index");
    if (member.name.empty()) member.name = member.index->spec().name;
    if (member.name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("an index of a group has no name, neither here nor in its spec: %s",
                          member.index->spec().ToString()));
    }
    if (member.index->in_shards()) {
      return absl::UnimplementedError(
          absl::StrFormat("index '%s' is in shards, which no group takes", member.name));
    }
    auto version = VersionOf(*member.index);
    if (version == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrFormat("index '%s' changes with its database: IndexedDB::PinTogether gives a "
                          "state of it",
                          member.name));
    }
    for (size_t i = 0; i < versions.size(); ++i) {
      if (members[i].name == member.name) {
        return absl::InvalidArgumentError(
            absl::StrFormat("two indexes of a group are called '%s'", member.name));
      }
    }
    if (!versions.empty()) {
      RETURN_IF_ERROR(CheckTogether(members[0], *versions[0], member, *version));
    }
    RETURN_IF_ERROR(version->base->Prove(Topology::Get().Threads(0)));
    group.push_back(std::make_unique<GroupMember>(member.name, version));
    versions.push_back(std::move(version));
  }
  const auto* const before = dynamic_cast<const Group*>(after.get());
  ASSIGN_OR_RETURN(
      std::shared_ptr<const RowSpace> space,
      RowSpace::Create(std::move(versions), before == nullptr ? nullptr : before->space()));
  return std::make_shared<const Group>(std::move(members), std::move(group), std::move(space));
}

absl::StatusOr<std::shared_ptr<const IndexGroup>> IndexGroup::Create(std::vector<Member> members) {
  return Guarded("making a group of indexes",
                 [&] { return CreateIndexGroup(std::move(members), nullptr); });
}

}  // namespace cairn
