// cairn join: prints pairs of rows of two indexes with equal keys, page by page.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/join.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/print/entry_printer.h"
#include "tools/print/output.h"

namespace cairn::tools {
namespace {

constexpr uint64_t kPagePairs = 1 << 16;  // pairs in memory at a time

struct JoinGiven {
  std::string left, right;
  std::vector<std::string> select, select_right;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  bool count = false;
  std::string format = "text";
};

// Prints all pairs, up to the limit.
absl::Status PrintPairs(const JoinGiven& given, const SecondaryIndex& left,
                        const SecondaryIndex& right, Output* output) {
  std::vector<std::string> names = {"right.primary_key"};
  const EntryJsonNames json = {/*primary_key=*/"left.primary_key",
                               /*beside=*/1};
  for (const std::string& name : given.select) names.push_back("left." + name);
  for (const std::string& name : given.select_right) names.push_back("right." + name);
  const std::unique_ptr<EntryPrinter> printer =
      EntryPrinter::Make(given.format, left.codec(), names, /*with_values=*/false, output, json);
  JoinOptions options;
  options.with_keys = true;
  options.left_columns = given.select;
  options.right_columns = given.select_right;
  options.cancelled = &Interrupted();
  JoinResult rows;
  std::vector<DataValue> cells;
  for (uint64_t rest = given.limit; rest > 0; rest -= rows.size()) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    options.limit = std::min(rest, kPagePairs);
    RETURN_IF_ERROR(AsUsageError(Join(left, right, options, &rows)));
    StringList of_left, of_right;
    RETURN_IF_ERROR(left.PrimaryKeys(rows.left, &of_left));
    RETURN_IF_ERROR(right.PrimaryKeys(rows.right, &of_right));
    for (size_t j = 0; j < rows.size(); ++j) {
      cells.assign(1, DataValue(of_right[j]));
      for (const ColumnValues& column : rows.left_columns) cells.push_back(column.value(j));
      for (const ColumnValues& column : rows.right_columns) cells.push_back(column.value(j));
      RETURN_IF_ERROR(printer->Print({rows.keys, j, of_left[j], cells, {}}));
    }
    if (rows.cursor.empty()) break;
    options.after = rows.cursor;
  }
  printer->End();
  return absl::OkStatus();
}

absl::StatusOr<int> RunJoin(const JoinGiven& given) {
  OpenOptions open;
  open.calibration = Calibration::kStored;
  ASSIGN_OR_RETURN(const std::unique_ptr<SecondaryIndex> left,
                   SecondaryIndex::Open(given.left, open));
  ASSIGN_OR_RETURN(const std::unique_ptr<SecondaryIndex> right,
                   SecondaryIndex::Open(given.right, open));
  Output output;
  if (given.count) {
    JoinOptions join;
    join.cancelled = &Interrupted();
    ASSIGN_OR_RETURN(const uint64_t pairs, CountJoin(*left, *right, join));
    output.Write(std::to_string(pairs) + "\n");
  } else {
    RETURN_IF_ERROR(PrintPairs(given, *left, *right, &output));
  }
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddJoinCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<JoinGiven>();
  CLI::App* command = app->add_subcommand(
      "join", "Prints the pairs of rows of two indexes that have the same key, in key order");
  command->add_option("LEFT", given->left, "An index's directory")->required();
  command->add_option("RIGHT", given->right, "The directory of another index, or the same")
      ->required();
  command
      ->add_option("--select", given->select, "Also print these included columns of the left rows")
      ->type_name("COLUMN,…")
      ->delimiter(',');
  command
      ->add_option("--select-right", given->select_right,
                   "Also print these included columns of the right rows")
      ->type_name("COLUMN,…")
      ->delimiter(',');
  command->add_option("--limit", given->limit, "The maximum number of pairs")
      ->type_name("N")
      ->check(Count());
  command->add_flag("--count", given->count, "Print only the number of pairs");
  command->add_option("--format", given->format, "text, tsv or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "tsv", "json"}));
  command->footer(R"(
As in SQL's inner join, every row of one index is paired with every row of the other that has the
same key; a null equals nothing. Keys must have the same types.

A line contains the key, the left primary key, the right primary key and the selected columns, as cairn
query prints them. As JSON: {"key":…,"left.primary_key":…,"right.primary_key":…,"columns":{…}}

Examples:
  cairn join /tmp/orders_by_customer /tmp/customers_by_id --select=amount --select-right=name
  cairn join /tmp/by_city /tmp/by_city --count)");
  command->callback([given, action] { *action = [given] { return RunJoin(*given); }; });
}

}  // namespace cairn::tools
