// cairn compact: merges an index's changes into new base files.
#include "tools/cli/compact_command.h"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "index/machine/status_macros.h"
#include "tools/cli/build_progress.h"
#include "tools/cli/command.h"
#include "tools/cli/route_options.h"
#include "tools/text/readable.h"

namespace cairn::tools {

absl::Status CompactIndex(const CompactOptionsGiven& given, SecondaryIndex* index, Output* output) {
  CompactOptions options;
  options.threads = given.threads;
  options.max_bytes_per_second = given.max_bytes_per_second;
  options.cancelled = &Interrupted();
  ASSIGN_OR_RETURN(const IndexStats before, index->Stats());
  const auto start = std::chrono::steady_clock::now();
  {
    BuildProgress progress;
    options.on_progress = [&progress](const Progress& now) { progress.Show(now); };
    RETURN_IF_ERROR(index->Compact(options));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSIGN_OR_RETURN(const IndexStats stats, index->Stats());
  if (stats.version == before.version) {
    output->Write("there is nothing to compact\n");
    return absl::OkStatus();
  }
  output->Write(absl::StrFormat("compacted: %s entries of %s rows, in %.2f s\n",
                                WithCommas(stats.entries), WithCommas(stats.rows), seconds));
  return absl::OkStatus();
}

namespace {

absl::StatusOr<int> RunCompact(const std::string& directory, const CompactOptionsGiven& given) {
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> index,
                   SecondaryIndex::Open(directory, ForFewQueries()));
  Output output;
  RETURN_IF_ERROR(CompactIndex(given, index.get(), &output));
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

struct CompactCommand {
  std::string index;
  CompactOptionsGiven options;
};

}  // namespace

void AddCompactCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<CompactCommand>();
  CLI::App* command =
      app->add_subcommand("compact", "Merges an index's changes into new base files");
  command->add_option("INDEX", given->index, "The index's directory")->required();
  command->add_option("--threads", given->options.threads, "Threads (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--max-bytes-per-second", given->options.max_bytes_per_second,
                   "Average limit of writes, like 20M (default: no limit)")
      ->type_name("N")
      ->transform(Bytes());
  command->footer(R"(
The result is the index's next version; processes that have the index open keep reading the old one.
An index without changes stays as it is.

Examples:
  cairn compact /tmp/phone
  cairn compact /tmp/phone --threads=2 --max-bytes-per-second=50M)");
  command->callback(
      [given, action] { *action = [given] { return RunCompact(given->index, given->options); }; });
}

}  // namespace cairn::tools
