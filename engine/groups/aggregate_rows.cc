// IndexGroup::GroupBy: for every kind of group, by way of what else it answers.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_group.h"
#include "engine/aggregates/aggregate_values.h"
#include "engine/groups/group_accumulator.h"
#include "engine/groups/group_order.h"
#include "engine/groups/row_groups.h"
#include "engine/util/cursor_tag.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

// Rows whose columns are in memory at a time.
constexpr size_t kRowsTogether = size_t{1} << 16;

// One call.
class RowAggregation {
 public:
  RowAggregation(const IndexGroup& group, absl::Span<const Aggregate> aggregates,
                 const GroupByOptions& options)
      : group_(group), aggregates_(aggregates), options_(options) {}

  absl::Status Run(const Predicate& where, GroupByResult* groups) {
    RETURN_IF_ERROR(Prepare());
    const std::string question = Question(where);
    std::string_view after;
    if (!options_.after.empty()) {
      ASSIGN_OR_RETURN(after, UntagCursor(question, options_.after, "GroupByOptions::after"));
    }
    WhereOptions find;
    find.strategy = options_.strategy;
    find.cancelled = options_.cancelled;
    if (names_.empty()) {
      ASSIGN_OR_RETURN(groups->rows, group_.Count(where, find, &groups->plan));
      counts_.assign(1, groups->rows);
    } else {
      WhereResult matches;
      RETURN_IF_ERROR(group_.Find(where, find, &matches));
      groups->rows = matches.rows.size();
      groups->plan = std::move(matches.plan);
      RETURN_IF_ERROR(Add(matches.shards, matches.rows));
    }
    RETURN_IF_ERROR(Finish(after, groups));
    if (!groups->cursor.empty()) groups->cursor = TagCursor(question, groups->cursor);
    return absl::OkStatus();
  }

 private:
  struct Output {
    size_t column = 0;  // among names_; not of the count of rows
    DataType type = DataType::kU64;
    std::unique_ptr<GroupAccumulator> accumulator;  // null for the count of rows
  };

  // The question that a cursor belongs to.
  std::string Question(const Predicate& where) const {
    std::string text = "groups\n";
    for (const std::string& column : options_.group_by) absl::StrAppend(&text, column, "\n");
    for (const Aggregate& aggregate : aggregates_) {
      absl::StrAppend(&text, "\t", AggregateText(aggregate), "\n");
    }
    for (const GroupOrder& by : options_.order_by) {
      absl::StrAppend(&text, by.column, by.order == Order::kAscending ? " asc\n" : " desc\n");
    }
    return absl::StrCat(text, where.ToString());
  }

  // Finds the columns, and checks what is asked of them.
  absl::Status Prepare() {
    if (aggregates_.empty() && options_.group_by.empty()) {
      return absl::InvalidArgumentError(
          "neither an aggregate nor a column to group by is asked for");
    }
    for (const GroupOrder& by : options_.order_by) {
      if (by.column < options_.group_by.size() + aggregates_.size()) continue;
      return absl::InvalidArgumentError(absl::StrFormat(
          "GroupByOptions::order_by: there is no column %d, only %d to group by and %d aggregates",
          by.column, options_.group_by.size(), aggregates_.size()));
    }
    names_ = options_.group_by;
    for (const Aggregate& aggregate : aggregates_) {
      if (aggregate.function > AggregateFunction::kMax) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%d is no aggregate function", static_cast<int>(aggregate.function)));
      }
      Output output;
      if (!aggregate.column.empty()) {
        const auto found = std::find(names_.begin(), names_.end(), aggregate.column);
        output.column = static_cast<size_t>(found - names_.begin());
        if (found == names_.end()) names_.push_back(aggregate.column);
      } else if (aggregate.function != AggregateFunction::kCount) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: it wants a column", AggregateText(aggregate)));
      }
      outputs_.push_back(std::move(output));
    }
    RETURN_IF_ERROR(group_.Columns({}, {}, names_, &columns_));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (aggregates_[i].column.empty()) continue;
      const DataType type = columns_[outputs_[i].column].type();
      ASSIGN_OR_RETURN(outputs_[i].type, AggregateType(aggregates_[i], type));
      outputs_[i].accumulator = GroupAccumulator::Make(aggregates_[i], type);
    }
    std::vector<DataType> types;
    for (size_t c = 0; c < options_.group_by.size(); ++c) types.push_back(columns_[c].type());
    grouper_ = std::make_unique<RowGrouper>(types);
    return absl::OkStatus();
  }

  // `shards`: of the rows; empty where the group is in none.
  absl::Status Add(absl::Span<const uint32_t> shards, absl::Span<const RowId> rows) {
    std::vector<uint32_t> row_groups;
    for (size_t first = 0; first < rows.size(); first += kRowsTogether) {
      RETURN_IF_ERROR(CheckNotCancelled(options_.cancelled));
      const absl::Span<const RowId> some = rows.subspan(first, kRowsTogether);
      const auto of_some = shards.empty() ? shards : shards.subspan(first, some.size());
      RETURN_IF_ERROR(group_.Columns(of_some, some, names_, &columns_));
      row_groups.resize(some.size());
      grouper_->Add(absl::MakeConstSpan(columns_).first(options_.group_by.size()),
                    absl::MakeSpan(row_groups));
      counts_.resize(grouper_->groups());
      for (const uint32_t group : row_groups) ++counts_[group];
      for (Output& output : outputs_) {
        if (output.accumulator == nullptr) continue;
        output.accumulator->Add(columns_[output.column], row_groups, grouper_->groups());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish(std::string_view after, GroupByResult* groups) {
    const size_t size = grouper_->groups();
    counts_.resize(size);
    std::vector<ColumnValues> keys, values;
    for (size_t c = 0; c < options_.group_by.size(); ++c) keys.push_back(grouper_->KeysOf(c));
    for (Output& output : outputs_) {
      RETURN_IF_ERROR(CheckNotCancelled(options_.cancelled));
      ColumnValues& column = values.emplace_back(output.type);
      if (output.accumulator == nullptr) {
        for (const uint64_t count : counts_) column.AppendNumber(count);
      } else {
        RETURN_IF_ERROR(output.accumulator->Append(
            size, [&](size_t group) { return grouper_->Described(group); }, &column));
      }
    }
    GroupSorter sorter(size);
    for (const GroupOrder& by : options_.order_by) {
      RETURN_IF_ERROR(sorter.Then(
          by.column < keys.size() ? keys[by.column] : values[by.column - keys.size()], by.order));
    }
    for (const ColumnValues& key : keys) {
      RETURN_IF_ERROR(CheckNotCancelled(options_.cancelled));
      RETURN_IF_ERROR(sorter.Then(key, Order::kAscending));
    }
    std::vector<size_t> page;
    RETURN_IF_ERROR(sorter.Page(options_.limit, after, &page, &groups->cursor));
    const auto take = [&](const std::vector<ColumnValues>& from, std::vector<ColumnValues>* to) {
      to->clear();
      for (const ColumnValues& column : from) {
        ColumnValues& taken = to->emplace_back(column.type());
        for (const size_t group : page) taken.AppendFrom(column, group, 1);
      }
    };
    take(keys, &groups->keys);
    take(values, &groups->values);
    groups->size = page.size();
    return absl::OkStatus();
  }

  const IndexGroup& group_;
  const absl::Span<const Aggregate> aggregates_;
  const GroupByOptions& options_;
  std::vector<std::string> names_;     // of the columns that are read: those to group by first
  std::vector<ColumnValues> columns_;  // of some rows
  std::vector<Output> outputs_;        // one an aggregate
  std::unique_ptr<RowGrouper> grouper_;
  std::vector<uint64_t> counts_;  // rows of each group
};

}  // namespace

absl::Status IndexGroup::GroupBy(const Predicate& where, absl::Span<const Aggregate> aggregates,
                                 const GroupByOptions& options, GroupByResult* groups) const {
  return Guarded("aggregating rows",
                 [&] { return RowAggregation(*this, aggregates, options).Run(where, groups); });
}

}  // namespace cairn
