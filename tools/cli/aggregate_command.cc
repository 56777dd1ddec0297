// cairn aggregate: counts, sums, means and extremes of ranges, or of groups in them.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "index/machine/status_macros.h"
#include "tools/cli/aggregate_options.h"
#include "tools/cli/command.h"
#include "tools/cli/route_options.h"
#include "tools/cli/selectors.h"
#include "tools/print/table_printer.h"

namespace cairn::tools {
namespace {

// The number of groups of one range that are in memory at a time.
constexpr uint64_t kPageGroups = 1 << 14;

struct AggregateGiven {
  std::string index;
  SelectorOptions selectors;
  RouteOptions routes;
  AggregateOptions aggregates;
  bool count_distinct = false;
  size_t group_by = 0;
  std::string format = "tsv";
};

std::vector<std::string> Names(size_t parts, absl::Span<const Aggregate> aggregates) {
  std::vector<std::string> names;
  for (size_t i = 1; i <= parts; ++i) names.push_back("part" + std::to_string(i));
  for (const Aggregate& aggregate : aggregates) names.push_back(NameOf(aggregate));
  return names;
}

// Prints value i of each of these columns, in the order of the columns.
absl::Status Print(absl::Span<const ColumnValues> keys, absl::Span<const ColumnValues> values,
                   size_t i, TablePrinter* printer) {
  std::vector<DataValue> line;
  for (const ColumnValues& key : keys) line.push_back(key.value(i));
  for (const ColumnValues& value : values) line.push_back(value.value(i));
  return printer->Print(line);
}

absl::Status PrintGroups(const SecondaryIndex& index, const KeyRange& range, size_t parts,
                         absl::Span<const Aggregate> aggregates, TablePrinter* printer) {
  RangeColumns columns(index.codec().kind());
  columns.Add(range);
  AggregateGroupsResult groups;
  std::vector<std::string> cursors;
  do {
    if (Interrupted()) return absl::CancelledError("interrupted");
    RangeBatch batch = columns.Batch();
    batch.after = cursors;
    RETURN_IF_ERROR(index.AggregateGroups(
        batch, parts, aggregates, {.limit = kPageGroups, .cancelled = &Interrupted()}, &groups));
    for (size_t g = 0; g < groups.offsets.back(); ++g) {
      RETURN_IF_ERROR(Print(groups.keys, groups.values, g, printer));
    }
    cursors = groups.cursors;
  } while (!cursors[0].empty());
  return absl::OkStatus();
}

absl::StatusOr<int> RunAggregate(AggregateGiven* given) {
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> index,
                   SecondaryIndex::Open(given->index, given->routes.Open()));
  ASSIGN_OR_RETURN(std::vector<KeyRange> ranges, given->selectors.Parse(index->codec()));
  if (given->count_distinct) given->aggregates.count_distinct = {""};
  std::vector<Aggregate> aggregates = given->aggregates.All();
  if (aggregates.empty()) aggregates.push_back(Aggregate::Count());
  RangeColumns columns(index->codec().kind());
  for (const KeyRange& range : ranges) columns.Add(range);
  std::vector<ColumnValues> values;
  // Checks the query before anything is printed.
  if (given->group_by == 0) {
    RETURN_IF_ERROR(AsUsageError(index->AggregateRanges(columns.Batch(), aggregates, &values)));
  } else {
    AggregateGroupsResult none;
    RETURN_IF_ERROR(AsUsageError(
        index->AggregateGroups(columns.Batch(), given->group_by, aggregates, {.limit = 0}, &none)));
  }
  TablePrinter printer(given->format, Names(given->group_by, aggregates), {});
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (given->group_by == 0) {
      RETURN_IF_ERROR(Print({}, values, i, &printer));
    } else {
      RETURN_IF_ERROR(PrintGroups(*index, ranges[i], given->group_by, aggregates, &printer));
    }
  }
  RETURN_IF_ERROR(printer.End());
  return kGood;
}

}  // namespace

void AddAggregateCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<AggregateGiven>();
  CLI::App* command = app->add_subcommand(
      "aggregate", "Prints counts, sums, means and extremes of each selector's entries");
  command->add_option("INDEX", given->index, "The index's directory")->required();
  given->selectors.AddTo(command);
  given->routes.AddTo(command);
  command->add_flag("--count", given->aggregates.count,
                    "The number of entries; the default if no aggregate is given");
  command->add_flag("--count-distinct", given->count_distinct, "The number of distinct keys");
  given->aggregates.AddTo(command);
  command
      ->add_option("--group-by", given->group_by,
                   "One line per group of entries with the same first K parts of the key")
      ->type_name("K")
      ->check(Count(1));
  command->add_option("--format", given->format, "text, tsv or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "tsv", "json"}));
  command->footer(R"text(
Prints one line per selector, in their order, or one per group, in key order: the group's parts,
then the counts, sums, means, minimums and maximums. Columns are those that the index includes.
For aggregates of the rows of a predicate, grouped by any column, see 'cairn query --where'.

tsv    a headline, then values, tab-separated; in text, every byte outside '!' to '~', and the
       backslash, as \xHH; null as \N
json   {"part1":…,"count":…,"sum(price)":…}

Examples:
  cairn aggregate /tmp/nation_balance --range=.. --group-by=1 --count --avg=balance
  cairn aggregate /tmp/phone --prefix=25- --prefix=26- --count-distinct --min=name)text");
  command->callback([given, action] { *action = [given] { return RunAggregate(given.get()); }; });
}

}  // namespace cairn::tools
