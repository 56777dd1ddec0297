#include "engine/where/index_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "engine/serve/open_index.h"
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
        search_(&group_, space_) {}

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
      columns->clear();
      for (const std::string& name : names) {
        columns->emplace_back();
        RETURN_IF_ERROR(ReadColumn(rows, name, &columns->back()));
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

  // The member and the number there of a column.
  absl::Status FindColumn(const std::string& name, size_t* member, size_t* column) const {
    std::string there;
    size_t found = 0;
    for (size_t i = 0; i < members_.size(); ++i) {
      const ColumnTable& table = group_[i]->delta().base_columns;
      for (size_t c = 0; c < table.columns().size(); ++c) {
        const std::string& own = table.columns()[c].name;
        const std::string full = absl::StrCat(members_[i].name, ".", own);
        absl::StrAppend(&there, there.empty() ? "" : ", ", full);
        if (name != own && name != full) continue;
        if (name == full) {
          *member = i, *column = c;
          return absl::OkStatus();
        }
        if (found++ == 0) *member = i, *column = c;
      }
    }
    if (found == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s column %s, %s", found == 0 ? "no index of the group includes a" : "several include a",
        Quoted(name), there.empty() ? "nor any other" : "of " + there));
  }

  absl::Status ReadColumn(absl::Span<const RowId> rows, const std::string& name,
                          ColumnValues* values) const {
    size_t m = 0, column = 0;
    RETURN_IF_ERROR(FindColumn(name, &m, &column));
    RETURN_IF_ERROR(CheckRows(rows));
    const GroupMember& member = *group_[m];
    RETURN_IF_ERROR(member.Prepare());
    const Delta& delta = member.delta();
    values->Clear(delta.base_columns.columns()[column].type);
    // What a row has that has no key here any more is not kept up to date.
    const EntrySet none(delta);
    std::vector<RowId> known;
    std::vector<bool> is_known;
    for (const RowId row : rows) {
      const RowId local = space_->ToMember(m, row);
      is_known.push_back(local != kNoRow && member.Look(local, none).any);
      if (is_known.back()) known.push_back(local);
    }
    ColumnValues of_known(values->type());
    RETURN_IF_ERROR(
        delta.Included(known, absl::MakeConstSpan(&column, 1), absl::MakeSpan(&of_known, 1)));
    if (known.size() == rows.size()) {
      *values = std::move(of_known);
      return absl::OkStatus();
    }
    for (size_t i = 0, next = 0; i < rows.size(); ++i) {
      if (is_known[i]) {
        values->AppendFrom(of_known, next++, 1);
      } else {
        values->AppendNull();
      }
    }
    return absl::OkStatus();
  }

  const std::vector<Member> members_;
  const GroupMembers group_;
  const std::shared_ptr<const RowSpace> space_;
  const WhereSearch search_;
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
