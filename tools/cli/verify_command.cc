// cairn verify: checks an index's structure and, if a source is given, its entries against the
// rows.
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/route_options.h"
#include "tools/print/output.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

struct VerifyOptionsGiven {
  std::string index;
  SourceOptions source;
  size_t max_differences = 100;
};

absl::StatusOr<int> RunVerify(const VerifyOptionsGiven& given) {
  Output output;
  // A damaged file is a result; a missing index is a failure.
  const auto found = [&](const absl::Status& status) -> absl::StatusOr<int> {
    if (!absl::IsDataLoss(status)) return status;
    output.Write(std::string(status.message()) + "\n");
    RETURN_IF_ERROR(output.Flush());
    return kDifferent;
  };
  absl::StatusOr<std::unique_ptr<SecondaryIndex>> index =
      SecondaryIndex::Open(given.index, ForFewQueries());
  if (!index.ok()) return found(index.status());
  if (absl::Status s = (*index)->Verify(); !s.ok()) return found(s);
  absl::StatusOr<IndexStats> stats = (*index)->Stats();
  if (!stats.ok()) return found(stats.status());
  const std::string held =
      absl::StrFormat("%s entries of %s rows", WithCommas(stats->entries), WithCommas(stats->rows));
  if (!given.source.given()) {
    output.Write(absl::StrFormat("OK: %s; checksums and key order verified\n", held));
    RETURN_IF_ERROR(output.Flush());
    return kGood;
  }

  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotSource> source,
                   OpenSource(given.source, (*index)->spec().column_family));
  std::vector<std::string> differences;
  RETURN_IF_ERROR((*index)->VerifyAgainst(*source, given.max_differences, &differences));
  for (const std::string& difference : differences) output.Write(difference + "\n");
  if (differences.empty()) {
    output.Write(absl::StrFormat("OK: %s; checksums and key order verified, equal to %s\n", held,
                                 source->description()));
  } else if (differences.size() >= given.max_differences) {
    output.Write(absl::StrFormat("stopped after %d differences (--max-differences)\n",
                                 given.max_differences));
  }
  RETURN_IF_ERROR(output.Flush());
  return differences.empty() ? kGood : kDifferent;
}

}  // namespace

void AddVerifyCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<VerifyOptionsGiven>();
  CLI::App* command = app->add_subcommand(
      "verify", "Checks an index's files and, with a source, every entry against the rows");
  command->add_option("INDEX", given->index, "The index's directory")->required();
  AddSourceOptions(command, &given->source);
  command->add_option("--max-differences", given->max_differences, "Stop after N differences")
      ->type_name("N")
      ->check(CLI::Range(size_t{1}, size_t{1} << 32))
      ->capture_default_str();
  command->footer(R"(
The exit status is 0 if everything is good; otherwise 1, with the differences on standard output.

Examples:
  cairn verify /tmp/phone
  cairn verify /tmp/phone --db=/tmp/db)");
  command->callback([given, action] { *action = [given] { return RunVerify(*given); }; });
}

}  // namespace cairn::tools
