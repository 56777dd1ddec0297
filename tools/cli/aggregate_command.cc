// cairn aggregate: counts, sums, means and extremes of ranges, or of groups in them.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/columns/aggregate.h"
#include "cairn/columns/column_values.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/route_options.h"
#include "tools/cli/selectors.h"
#include "tools/text/value_text.h"

namespace cairn::tools {
namespace {

// Groups, of one range, that are in memory at a time.
constexpr uint64_t kPageGroups = 1 << 14;

struct AggregateOptions {
  std::string index;
  SelectorOptions selectors;
  RouteOptions routes;
  bool count = false;
  bool count_distinct = false;
  std::vector<std::string> sum, avg, min, max;
  size_t group_by = 0;
  std::string format = "tsv";

  std::vector<Aggregate> Aggregates() const {
    std::vector<Aggregate> all;
    if (count) all.push_back(Aggregate::Count());
    if (count_distinct) all.push_back(Aggregate::CountDistinct());
    const auto add = [&](AggregateFunction function, const std::vector<std::string>& columns) {
      for (const std::string& column : columns) all.push_back({function, column});
    };
    add(AggregateFunction::kSum, sum);
    add(AggregateFunction::kAvg, avg);
    add(AggregateFunction::kMin, min);
    add(AggregateFunction::kMax, max);
    if (all.empty()) all.push_back(Aggregate::Count());
    return all;
  }
};

// Writes one line a range or group: its values, as cells or as members of an object.
class AggregatePrinter {
 public:
  AggregatePrinter(bool json, size_t parts, absl::Span<const Aggregate> aggregates) : json_(json) {
    for (size_t i = 1; i <= parts; ++i) names_.push_back("part" + std::to_string(i));
    for (const Aggregate& aggregate : aggregates) {
      const std::string function = AggregateFunctionName(aggregate.function);
      names_.push_back(aggregate.column.empty() ? function
                                                : function + "(" + aggregate.column + ")");
    }
    if (json_) return;
    for (size_t i = 0; i < names_.size(); ++i) line_ += (i == 0 ? "" : "\t") + names_[i];
    output_.Write(line_ + "\n");
  }

  // Value i of each of these columns, one behind the other.
  absl::Status Print(absl::Span<const ColumnValues> keys, absl::Span<const ColumnValues> values,
                     size_t i) {
    line_ = json_ ? "{" : "";
    for (size_t c = 0; c < names_.size(); ++c) {
      const KeyValue value = (c < keys.size() ? keys[c] : values[c - keys.size()]).value(i);
      if (json_) {
        if (c != 0) line_ += ',';
        AppendJsonValue(std::string_view(names_[c]), &line_);
        line_ += ':';
        AppendJsonValue(value, &line_);
      } else {
        if (c != 0) line_ += '\t';
        AppendTsvValue(value, &line_);
      }
    }
    output_.Write(line_ + (json_ ? "}\n" : "\n"));
    return output_.status();
  }
  absl::Status Flush() { return output_.Flush(); }

 private:
  const bool json_;
  std::vector<std::string> names_;
  std::string line_;
  Output output_;
};

absl::Status PrintGroups(const SecondaryIndex& index, const KeyRange& range, size_t parts,
                         absl::Span<const Aggregate> aggregates, AggregatePrinter* printer) {
  RangeColumns columns(index.codec().kind());
  columns.Add(range);
  Groups groups;
  std::vector<std::string> cursors;
  do {
    if (Interrupted()) return absl::CancelledError("interrupted");
    RangeBatch batch = columns.Batch();
    batch.after = cursors;
    RETURN_IF_ERROR(index.AggregateGroups(batch, parts, aggregates, {kPageGroups}, &groups));
    for (size_t g = 0; g < groups.offsets.back(); ++g) {
      RETURN_IF_ERROR(printer->Print(groups.keys, groups.values, g));
    }
    cursors = groups.cursors;
  } while (!cursors[0].empty());
  return absl::OkStatus();
}

absl::StatusOr<int> RunAggregate(AggregateOptions* given) {
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> index,
                   SecondaryIndex::Open(given->index, given->routes.Open()));
  ASSIGN_OR_RETURN(std::vector<KeyRange> ranges, given->selectors.Parse(index->codec()));
  const std::vector<Aggregate> aggregates = given->Aggregates();
  RangeColumns columns(index->codec().kind());
  for (const KeyRange& range : ranges) columns.Add(range);
  std::vector<ColumnValues> values;
  // Before anything is printed: it also says what cannot be asked.
  if (given->group_by == 0) {
    RETURN_IF_ERROR(index->AggregateRanges(columns.Batch(), aggregates, &values));
  } else {
    Groups none;
    RETURN_IF_ERROR(
        index->AggregateGroups(columns.Batch(), given->group_by, aggregates, {0}, &none));
  }
  AggregatePrinter printer(given->format == "json", given->group_by, aggregates);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (given->group_by == 0) {
      RETURN_IF_ERROR(printer.Print({}, values, i));
    } else {
      RETURN_IF_ERROR(PrintGroups(*index, ranges[i], given->group_by, aggregates, &printer));
    }
  }
  RETURN_IF_ERROR(printer.Flush());
  return kGood;
}

}  // namespace

void AddAggregateCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<AggregateOptions>();
  CLI::App* command = app->add_subcommand(
      "aggregate", "Prints counts, sums, means and extremes of each selector's entries");
  command->add_option("INDEX", given->index, "The index's directory")->required();
  given->selectors.AddTo(command);
  given->routes.AddTo(command);
  command->add_flag("--count", given->count,
                    "How many entries; what is printed where nothing is "
                    "named");
  command->add_flag("--count-distinct", given->count_distinct, "How many different keys");
  const auto add = [&](const char* name, std::vector<std::string>* columns, const char* text) {
    command->add_option(name, *columns, text)->type_name("COLUMN,…")->delimiter(',');
  };
  add("--sum", &given->sum, "Sums of these columns, of those that the index includes");
  add("--avg", &given->avg, "Their means");
  add("--min", &given->min, "Their least values");
  add("--max", &given->max, "Their greatest values");
  command
      ->add_option("--group-by", given->group_by,
                   "A line for each group of entries with the same first K parts of the key")
      ->type_name("K")
      ->check(CLI::PositiveNumber);
  command->add_option("--format", given->format, "tsv or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"tsv", "json"}));
  command->footer(R"text(
One line a selector, in their order, or one a group, in the order of keys: the group's parts, then
the counts, sums, means, least and greatest values.

tsv    a headline, then values, tab-separated; of text every byte outside '!' to '~', and the
       backslash, as \xHH; null as \N
json   {"part1":…,"count":…,"sum(price)":…
}

Examples:
  cairn aggregate /tmp/nation_balance --range=.. --group-by=1 --count --avg=balance
  cairn aggregate /tmp/phone --prefix=25- --prefix=26- --count-distinct --min=name)text");
  command->callback([given, action] { *action = [given] { return RunAggregate(given.get()); }; });
}

}  // namespace cairn::tools
