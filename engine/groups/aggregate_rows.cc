// IndexGroup::GroupBy. It groups rows with the group's other queries, so it supports every kind of
// index group.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/index_group.h"
#include "cairn/query.h"
#include "engine/aggregates/aggregate_values.h"
#include "engine/groups/group_accumulator.h"
#include "engine/groups/value_codes.h"
#include "engine/util/cursor_tag.h"
#include "engine/util/make_room.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_encoding.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

// Numbers groups of rows with equal values in some columns, from 0, in the order of their first
// rows. Without columns there is one group, even without rows. Equality is that of ValueCodes.
// Throws std::bad_alloc; afterwards the object must not be used.
class RowGrouper {
 public:
  explicit RowGrouper(absl::Span<const DataType> types);

  // Sets groups[i] to the group of row i, whose values are value i of each column.
  void Add(absl::Span<const ColumnValues> columns, absl::Span<uint32_t> groups);

  size_t groups() const { return groups_; }
  // Returns each group's value in a column.
  ColumnValues KeysOf(size_t column) const;
  // Returns, for messages, "group 'ASIA',1997" or "all rows".
  std::string Described(size_t group) const;

 private:
  uint32_t CodeOf(size_t group, size_t column) const {
    return codes_[group * values_.size() + column];
  }

  std::vector<ValueCodes> values_;  // one per column
  // pairs_[c] numbers the pairs of two numbers: that of the values of columns 0 … c, and the code
  // in column c + 1. The last map's numbers are the groups.
  std::vector<absl::flat_hash_map<uint64_t, uint32_t>> pairs_;
  size_t groups_ = 0;
  std::vector<uint32_t> codes_;  // group-major: one per group and column
  std::vector<uint32_t> added_;  // scratch, column-major: one per column and row
};

RowGrouper::RowGrouper(absl::Span<const DataType> types)
    : pairs_(types.size() < 2 ? 0 : types.size() - 1), groups_(types.empty() ? 1 : 0) {
  for (const DataType type : types) values_.emplace_back(type);
}

void RowGrouper::Add(absl::Span<const ColumnValues> columns, absl::Span<uint32_t> groups) {
  const size_t rows = groups.size();
  if (values_.empty()) {
    std::fill(groups.begin(), groups.end(), 0);
    return;
  }
  added_.resize(values_.size() * rows);
  for (size_t c = 0; c < values_.size(); ++c) {
    values_[c].Add(columns[c], absl::MakeSpan(added_).subspan(c * rows, rows));
  }
  std::copy_n(added_.begin(), rows, groups.begin());
  for (size_t c = 0; c < pairs_.size(); ++c) {
    absl::flat_hash_map<uint64_t, uint32_t>& pairs = pairs_[c];
    const uint32_t* const code = added_.data() + (c + 1) * rows;
    for (size_t i = 0; i < rows; ++i) {
      const uint64_t pair = uint64_t{groups[i]} << 32 | code[i];
      const auto found = pairs.find(pair);
      if (found != pairs.end()) {
        groups[i] = found->second;
      } else {
        groups[i] = static_cast<uint32_t>(pairs.size());
        MakeRoomForOne(&pairs);
        pairs.emplace(pair, groups[i]);
      }
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    if (groups[i] < groups_) continue;
    ++groups_;
    for (size_t c = 0; c < values_.size(); ++c) codes_.push_back(added_[c * rows + i]);
  }
}

ColumnValues RowGrouper::KeysOf(size_t column) const {
  const ColumnValues& values = values_[column].values();
  ColumnValues keys(values.type());
  for (size_t g = 0; g < groups_; ++g) keys.AppendFrom(values, CodeOf(g, column), 1);
  return keys;
}

std::string RowGrouper::Described(size_t group) const {
  if (values_.empty()) return "all rows";
  std::string text = "group ";
  for (size_t c = 0; c < values_.size(); ++c) {
    absl::StrAppend(&text, c == 0 ? "" : ",",
                    cairn::Described(values_[c].values().value(CodeOf(group, c))));
  }
  return text;
}

// Sorts groups and selects a page of them. Each group has bytes that compare as the groups do, and
// a cursor contains these bytes. Throws std::bad_alloc.
class GroupSorter {
 public:
  explicit GroupSorter(size_t groups) : keys_(groups) {}

  // Orders groups that are equal so far by this column, which has one value per group. Null is the
  // smallest value. InvalidArgument: a text is longer than a key may be.
  absl::Status Then(const ColumnValues& column, Order order);

  // Sets *groups to the first `limit` groups after `after`, a cursor or empty, in order. Sets
  // *cursor to the last one's, or to "" if there are no more groups. InvalidArgument: `after` is
  // not a cursor.
  absl::Status Page(uint64_t limit, std::string_view after, std::vector<size_t>* groups,
                    std::string* cursor) const;

 private:
  std::vector<std::string> keys_;
};

// The first byte of a cursor of groups.
constexpr char kOfGroup = 'g';

absl::Status GroupSorter::Then(const ColumnValues& column, Order order) {
  // The encoding of a part that is not the last has a terminator.
  const PartLayout layout = {column.type(), NullPolicy::kFirst, /*last=*/false};
  for (size_t i = 0; i < keys_.size(); ++i) {
    std::string& key = keys_[i];
    const size_t begin = key.size();
    RETURN_IF_ERROR(AppendPart(layout, column.value(i), &key));
    if (order == Order::kAscending) continue;
    for (size_t b = begin; b < key.size(); ++b) key[b] = static_cast<char>(~key[b]);
  }
  return absl::OkStatus();
}

absl::Status GroupSorter::Page(uint64_t limit, std::string_view after, std::vector<size_t>* groups,
                               std::string* cursor) const {
  cursor->clear();
  groups->clear();
  if (!after.empty() && after[0] != kOfGroup) {
    return absl::InvalidArgumentError("GroupByOptions::after: expected a cursor of groups");
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (after.empty() || keys_[i] > after.substr(1)) groups->push_back(i);
  }
  const auto less = [&](size_t a, size_t b) { return keys_[a] < keys_[b]; };
  const bool more = groups->size() > limit && limit > 0;
  if (limit == 0) groups->clear();
  if (more) {
    const auto end = groups->begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(groups->begin(), end, groups->end(), less);
    groups->erase(end, groups->end());
  }
  std::sort(groups->begin(), groups->end(), less);
  if (more) *cursor = std::string(1, kOfGroup).append(keys_[groups->back()]);
  return absl::OkStatus();
}

// Number of rows whose columns are in memory at a time.
constexpr size_t kRowsTogether = size_t{1} << 16;

// One call of GroupBy.
class RowAggregation {
 public:
  RowAggregation(const IndexGroup& group, absl::Span<const Aggregate> aggregates,
                 const GroupByOptions& options)
      : group_(group),
        aggregates_(aggregates),
        options_(options),
        stop_(StopCondition::Of(options)) {}

  absl::Status Run(const Predicate& where, GroupByResult* groups) {
    RETURN_IF_ERROR(Prepare());
    std::string_view after;
    if (!options_.after.empty()) {
      ASSIGN_OR_RETURN(after, Tag(where).Remove(options_.after, "GroupByOptions::after"));
    }
    WhereOptions find;
    find.strategy = options_.strategy;
    find.cancelled = options_.cancelled;
    find.deadline = options_.deadline;
    if (names_.empty()) {
      ASSIGN_OR_RETURN(groups->rows, group_.Count(where, find, &groups->plan));
      counts_.assign(1, groups->rows);
    } else {
      WhereResult matches;
      RETURN_IF_ERROR(group_.Find(where, find, &matches));
      groups->rows = matches.row_ids.size();
      groups->plan = std::move(matches.plan);
      RETURN_IF_ERROR(Add(matches));
    }
    RETURN_IF_ERROR(Finish(after, groups));
    if (!groups->cursor.empty()) groups->cursor = Tag(where).Add(groups->cursor);
    return absl::OkStatus();
  }

 private:
  struct Output {
    size_t column = 0;  // index in names_; unused for the count of rows
    DataType type = DataType::kU64;
    std::unique_ptr<GroupAccumulator> accumulator;  // null for the count of rows
  };

  // Returns the tag of the query's cursors.
  CursorTag Tag(const Predicate& where) const {
    std::vector<std::string> members;
    for (const IndexGroup::Member& member : group_.members()) {
      members.push_back(absl::StrCat(member.name, "\t", member.index->spec().ToString(), "\n"));
    }
    std::sort(members.begin(), members.end());
    std::string text = absl::StrCat("groups\n", absl::StrJoin(members, ""));
    for (const std::string& column : options_.group_by) absl::StrAppend(&text, column, "\n");
    for (const Aggregate& aggregate : aggregates_) {
      absl::StrAppend(&text, "\t", AggregateText(aggregate), "\n");
    }
    for (const GroupOrder& by : options_.order_by) {
      absl::StrAppend(&text, by.column, by.order == Order::kAscending ? " asc\n" : " desc\n");
    }
    return CursorTag::OfText(absl::StrCat(text, where.ToString()));
  }

  // Finds the columns, and checks the aggregates and the order.
  absl::Status Prepare() {
    if (aggregates_.empty() && options_.group_by.empty()) {
      return absl::InvalidArgumentError(
          "expected at least one aggregate or column to group by, got none");
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
        return absl::InvalidArgumentError(absl::StrFormat("expected an aggregate function, got %d",
                                                          static_cast<int>(aggregate.function)));
      }
      Output output;
      if (!aggregate.column.empty()) {
        const auto found = std::find(names_.begin(), names_.end(), aggregate.column);
        output.column = static_cast<size_t>(found - names_.begin());
        if (found == names_.end()) names_.push_back(aggregate.column);
      } else if (aggregate.function != AggregateFunction::kCount) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: expected a column, got none", AggregateText(aggregate)));
      }
      outputs_.push_back(std::move(output));
    }
    RETURN_IF_ERROR(group_.Columns({}, names_, &columns_));
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

  absl::Status Add(RowSpan rows) {
    std::vector<uint32_t> row_groups;
    for (size_t first = 0; first < rows.size(); first += kRowsTogether) {
      RETURN_IF_ERROR(stop_.Check());
      const RowSpan some = rows.Slice(first, std::min(kRowsTogether, rows.size() - first));
      RETURN_IF_ERROR(group_.Columns(some, names_, &columns_));
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
      RETURN_IF_ERROR(stop_.Check());
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
      RETURN_IF_ERROR(stop_.Check());
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
  const StopCondition stop_;
  std::vector<std::string> names_;     // columns to read, starting with those to group by
  std::vector<ColumnValues> columns_;  // of some rows
  std::vector<Output> outputs_;        // one per aggregate
  std::unique_ptr<RowGrouper> grouper_;
  std::vector<uint64_t> counts_;  // number of rows per group
};

}  // namespace

absl::StatusOr<std::vector<GroupOrder>> ParseGroupOrder(absl::Span<const std::string> texts,
                                                        absl::Span<const std::string> columns) {
  return Guarded("reading an order", [&]() -> absl::StatusOr<std::vector<GroupOrder>> {
    std::vector<GroupOrder> order;
    for (const std::string& text : texts) {
      std::string name = text;
      absl::StripAsciiWhitespace(&name);
      GroupOrder by;
      if (absl::EndsWithIgnoreCase(name, " desc")) {
        by.order = Order::kDescending;
        name.resize(name.size() - 5);
      } else if (absl::EndsWithIgnoreCase(name, " asc")) {
        name.resize(name.size() - 4);
      }
      absl::StripAsciiWhitespace(&name);
      const auto found = std::find(columns.begin(), columns.end(), name);
      if (found == columns.end()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("no column %s to order by; expected one of %s", Quoted(name),
                            absl::StrJoin(columns, ", ")));
      }
      by.column = static_cast<size_t>(found - columns.begin());
      order.push_back(by);
    }
    return order;
  });
}

absl::Status IndexGroup::GroupBy(const Predicate& where, absl::Span<const Aggregate> aggregates,
                                 const GroupByOptions& options, GroupByResult* groups) const {
  return Guarded("aggregating rows",
                 [&] { return RowAggregation(*this, aggregates, options).Run(where, groups); });
}

}  // namespace cairn
