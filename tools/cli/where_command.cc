// cairn where: the rows of a predicate over several indexes of one column family.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"
#include "cairn/string_list.h"
#include "cairn/where/index_group.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/route_options.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

struct WhereGiven {
  std::vector<std::string> indexes;
  std::string where;
  std::string order_by;
  bool reverse = false;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  std::vector<std::string> select;
  bool count = false;
  bool explain = false;
};

void AppendColumn(const ColumnValues& column, size_t i, std::string* line) {
  const KeyValue value = column.value(i);
  if (const auto* const text = std::get_if<std::string_view>(&value)) {
    AppendEscaped(*text, line);
  } else if (const auto* const number = std::get_if<uint64_t>(&value)) {
    absl::StrAppend(line, *number);
  } else if (const auto* const integer = std::get_if<int64_t>(&value)) {
    absl::StrAppend(line, *integer);
  } else if (const auto* const real = std::get_if<double>(&value)) {
    char shortest[32];
    line->append(shortest, std::to_chars(shortest, shortest + sizeof shortest, *real).ptr);
  } else {
    *line += "\\N";
  }
}

absl::Status PrintRows(const IndexGroup& group, const WhereMatches& matches, Output* output) {
  StringList keys;
  RETURN_IF_ERROR(group.PrimaryKeys(matches.shards, matches.rows, &keys));
  for (size_t i = 0; i < keys.size(); ++i) {
    std::string line;
    AppendEscaped(keys[i], &line);
    for (const ColumnValues& column : matches.columns) {
      line.push_back('\t');
      AppendColumn(column, i, &line);
    }
    line.push_back('\n');
    output->Write(line);
  }
  return output->status();
}

// An index that has no name is called as its directory.
absl::StatusOr<std::shared_ptr<const IndexGroup>> OpenGroup(
    const std::vector<std::string>& directories) {
  std::vector<IndexGroup::Member> members;
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(std::shared_ptr<SecondaryIndex> index,
                     SecondaryIndex::Open(directory, ForFewQueries()));
    std::string name = index->spec().name;
    if (name.empty()) {
      std::filesystem::path path(directory);
      if (path.filename().empty()) path = path.parent_path();
      name = path.filename().string();
    }
    members.push_back({std::move(index), std::move(name)});
  }
  return IndexGroup::Create(std::move(members));
}

absl::StatusOr<int> RunWhere(WhereGiven* given) {
  ASSIGN_OR_RETURN(const Predicate where, Predicate::Parse(given->where));
  ASSIGN_OR_RETURN(const std::shared_ptr<const IndexGroup> group, OpenGroup(given->indexes));
  WhereOptions options;
  options.order_by = given->order_by;
  options.order = given->reverse ? Order::kDescending : Order::kAscending;
  options.columns = given->select;
  Output output;
  if (given->count) {
    WherePlan plan;
    ASSIGN_OR_RETURN(const uint64_t count, group->Count(where, options, &plan));
    if (given->explain) std::fputs(plan.ToString().c_str(), stderr);
    output.Write(std::to_string(count) + "\n");
  } else {
    WhereMatches matches;
    options.limit = given->limit;
    if (given->limit > 0) RETURN_IF_ERROR(group->Find(where, options, &matches));
    if (given->explain) std::fputs(matches.plan.ToString().c_str(), stderr);
    RETURN_IF_ERROR(PrintRows(*group, matches, &output));
  }
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddWhereCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<WhereGiven>();
  CLI::App* command = app->add_subcommand(
      "where", "Prints the rows that a predicate over several indexes is true of");
  command->add_option("INDEX", given->indexes, "The indexes' directories")->required();
  command->add_option("--where", given->where, "The predicate")->type_name("PREDICATE")->required();
  command
      ->add_option("--order-by", given->order_by,
                   "The index in the order of whose keys rows come; else that of primary keys")
      ->type_name("NAME");
  command->add_flag("--reverse", given->reverse, "The greatest key first");
  command->add_option("--limit", given->limit, "The most rows")->type_name("N")->check(Count());
  command
      ->add_option("--select", given->select, "Also print these columns, which the indexes include")
      ->type_name("COLUMN,…")
      ->delimiter(',');
  command->add_flag("--count", given->count, "Print how many rows there are, and nothing else");
  command->add_flag("--explain", given->explain, "Say on standard error how rows were found");
  command->footer(R"help(
The indexes are of one column family and one state of the database, in shards or not. Indexes in
shards by source are of the same sources, in one order; primary keys are then those of all sources.

A predicate calls indexes by the names that their specs have, or else by the names of their
directories.

Rows are primary key[, columns], tab-separated; every byte outside '!' to '~', and the backslash, as
\xHH; null as \N.

Comparisons: = <> < <= > >= IN (…) BETWEEN … AND … LIKE 'text%' STARTS WITH … IS [NOT] NULL, joined
by AND, OR, NOT and parentheses. Text stands between single quotes, keys of several parts between
parentheses: place = ('PT', 'Lisbon').

Examples:
  cairn where /tmp/age /tmp/city --where="age >= 18 AND city IN ('Lisbon', 'Oslo')" --count
  cairn where /tmp/age /tmp/city --where="NOT city = 'Oslo'" --order-by=age --limit=10)help");
  command->callback([given, action] { *action = [given] { return RunWhere(given.get()); }; });
}

}  // namespace cairn::tools
