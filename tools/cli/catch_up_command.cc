// cairn catch-up: brings an index up to its database, from the database's log.
#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/compact_command.h"
#include "tools/cli/route_options.h"
#include "tools/print/output.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

struct CatchUpOptionsGiven {
  std::string index;
  std::string db;
  std::string column_family;  // empty: that of the index
  uint64_t max_bytes_per_second = 0;
  bool skip_identity_check = false;
  std::string compact;  // "always", "auto" or empty: never
  CompactOptionsGiven compacting;
};

absl::Status CatchUpFrom(const CatchUpOptionsGiven& given, SecondaryIndex* index, Output* output) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                   SnapshotSource::FromDirectory(given.db, index->spec().column_family));
  CatchUpOptions options;
  options.max_bytes_per_second = given.max_bytes_per_second;
  options.skip_identity_check = given.skip_identity_check;
  options.cancelled = &Interrupted();
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const CatchUpReport report, index->CatchUp(*source, options));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  output->Write(absl::StrFormat(
      "at sequence number %d of %s: %s changes of %s rows, in %s of log, in %.2f s\n",
      report.sequence, source->description(), WithCommas(report.changes), WithCommas(report.rows),
      WithUnit(report.log_bytes), seconds));
  return absl::OkStatus();
}

absl::StatusOr<int> RunCatchUp(const CatchUpOptionsGiven& given) {
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> index,
                   SecondaryIndex::Open(given.index, ForFewQueries()));
  const std::string& column_family = index->spec().column_family;
  if (!given.column_family.empty() && given.column_family != column_family) {
    return UsageError(absl::StrFormat("--cf=%s: the index is of column family '%s'",
                                      given.column_family, column_family));
  }
  Output output;
  RETURN_IF_ERROR(CatchUpFrom(given, index.get(), &output));
  if (given.compact == "always" || (given.compact == "auto" && index->ShouldCompact())) {
    RETURN_IF_ERROR(CompactIndex(given.compacting, index.get(), &output));
  } else if (given.compact == "auto") {
    output.Write("a compaction does not pay yet\n");
  }
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddCatchUpCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<CatchUpOptionsGiven>();
  CLI::App* command = app->add_subcommand(
      "catch-up", "Brings an index up to its database, from the database's log");
  command->add_option("INDEX", given->index, "The index's directory")->required();
  command->add_option("--db", given->db, "The index's database, opened read-only")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("--cf", given->column_family,
                   "The column family, which must be that of the index (default)")
      ->type_name("NAME");
  AddComparatorOption(command);
  command
      ->add_option("--max-bytes-per-second", given->max_bytes_per_second,
                   "Limit for reading the log and writing a compaction, like 20M (default: none)")
      ->type_name("N")
      ->transform(Bytes());
  command->add_flag(
      "--skip-identity-check", given->skip_identity_check,
      "Also accept a database that cannot be verified to continue the index's state; a "
      "proven mismatch is always an error");
  command
      ->add_option("--compact", given->compact,
                   "Then compact like 'cairn compact': always, or auto (only if it pays)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"always", "auto"}));
  command->footer(R"(
The changes are stored with the index, separately from its base files; 'cairn inspect' prints their
size, and 'cairn compact' merges them into new base files. Processes that have the index open keep
reading the version that they opened.

The database may be in use. It is an error, and nothing changes, if its log no longer reaches back
to the index's state, or if the database cannot be verified to be a later state of the one that the
index was built from (for example, after a restore of an older copy). Then rebuild the index.

Examples:
  cairn catch-up /tmp/phone --db=/tmp/db
  cairn catch-up /tmp/phone --db=/tmp/db --max-bytes-per-second=20M --compact=auto)");
  command->callback([given, action] {
    given->compacting.max_bytes_per_second = given->max_bytes_per_second;
    *action = [given] { return RunCatchUp(*given); };
  });
}

}  // namespace cairn::tools
