// cairn count: the number of entries in ranges.
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/route_options.h"
#include "tools/cli/selectors.h"
#include "tools/print/output.h"

namespace cairn::tools {
namespace {

struct CountOptions {
  std::string index;
  SelectorOptions selectors;
  RouteOptions routes;
};

absl::StatusOr<int> RunCount(CountOptions* given) {
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> index,
                   SecondaryIndex::Open(given->index, given->routes.Open()));
  ASSIGN_OR_RETURN(std::vector<KeyRange> ranges, given->selectors.Parse(index->codec()));
  RangeColumns columns(index->codec().kind());
  for (const KeyRange& range : ranges) columns.Add(range);
  std::vector<uint64_t> counts(ranges.size());
  Batch batch = Batch::Count(columns.Batch(), absl::MakeSpan(counts));
  given->routes.AddTo(&batch);
  RETURN_IF_ERROR(index->Execute(batch));
  given->routes.Note();
  given->routes.Print();
  Output output;
  for (const uint64_t count : counts) output.Write(std::to_string(count) + "\n");
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddCountCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<CountOptions>();
  CLI::App* command = app->add_subcommand(
      "count", "Prints the number of entries that each selector matches, one per line");
  command->add_option("INDEX", given->index, "The index's directory")->required();
  given->selectors.AddTo(command);
  given->routes.AddTo(command);
  command->footer(R"(
Examples:
  cairn count /tmp/city --eq=Lisbon
  cairn count /tmp/phone --prefix=25- --prefix=26- --range=..)");
  command->callback([given, action] { *action = [given] { return RunCount(given.get()); }; });
}

}  // namespace cairn::tools
