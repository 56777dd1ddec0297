// cairn build: builds one or several indexes in one pass over the rows of a column family.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "index/machine/status_macros.h"
#include "tools/cli/build_progress.h"
#include "tools/cli/command.h"
#include "tools/print/output.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

struct BuildOptionsGiven {
  SourceOptions source;
  std::string column_family;  // empty: those of the specs
  CLI::Option* specs = nullptr;
  std::string out;
  int threads = 0;
  uint32_t shards = 0;  // 0: not sharded
  uint64_t memory_budget = 0;
  bool prebuild_search_structure = false;
  bool unique = false;
  // Defaults for specs without these options; empty: none.
  std::string nulls;
  std::string on_error;
};

// Whether a spec's text has this option. A spec has an option at most once, so a spec that can be
// parsed, but not with the option added, already has it.
bool Says(const std::string& spec, const char* option) {
  return !IndexSpec::Parse(absl::StrFormat("%s, %s", spec, option)).ok();
}

// Parses a spec and adds the command line's options.
absl::StatusOr<IndexSpec> ParseSpec(const std::string& text, const BuildOptionsGiven& given) {
  absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(text);
  if (!spec.ok()) {
    return UsageError(
        absl::StrFormat("--spec \"%s\": %s", text, std::string(spec.status().message())));
  }
  if (!given.column_family.empty() && !Says(text, "cf=default")) {
    spec->column_family = given.column_family;
  }
  if (given.unique && !Says(text, "unique=true")) spec->unique = true;
  if (!given.nulls.empty() && !Says(text, "nulls=skip")) {
    spec->nulls = given.nulls == "first"  ? NullPolicy::kFirst
                  : given.nulls == "last" ? NullPolicy::kLast
                                          : NullPolicy::kSkip;
  }
  if (!given.on_error.empty() && !Says(text, "on_error=fail")) {
    spec->on_error = given.on_error == "skip" ? ErrorPolicy::kSkip : ErrorPolicy::kFail;
  }
  return spec;
}

// The indexes to build, each with its directory.
absl::StatusOr<std::vector<BuildTarget>> Targets(const BuildOptionsGiven& given) {
  std::vector<BuildTarget> targets;
  std::set<std::string> names;
  const std::vector<std::string> texts = given.specs->results();
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(IndexSpec spec, ParseSpec(text, given));
    std::string directory = given.out;
    if (texts.size() > 1) {
      // A name of dots only would not stay inside --out.
      if (spec.name.find_first_not_of('.') == std::string::npos) {
        return UsageError(absl::StrFormat(
            "--spec \"%s\": with several specs, each needs a name, for its directory: name=…",
            text));
      }
      if (!names.insert(spec.name).second) {
        return UsageError(absl::StrFormat("two specs have the name '%s'", spec.name));
      }
      directory = (std::filesystem::path(given.out) / spec.name).string();
    }
    targets.push_back({std::move(spec), std::move(directory)});
  }
  return targets;
}

// Creates --out for several indexes, and removes it if nothing was built.
class OutDirectory {
 public:
  absl::Status Make(const std::string& directory) {
    std::error_code error;
    made_ = std::filesystem::create_directory(directory, error);
    if (error) {
      return absl::InternalError(
          absl::StrFormat("cannot create the directory '%s': %s", directory, error.message()));
    }
    directory_ = directory;
    return absl::OkStatus();
  }
  ~OutDirectory() {
    std::error_code ignored;  // it is not empty if an index was built
    if (made_) std::filesystem::remove(directory_, ignored);
  }

 private:
  std::string directory_;
  bool made_ = false;
};

void PrintReport(const BuildTarget& target, const BuildReport& report, Output* output) {
  const std::string name = target.spec.name.empty() ? "" : target.spec.name + ": ";
  output->Write(absl::StrFormat("%s%s entries of %s rows, in '%s'\n", name,
                                WithCommas(report.entries), WithCommas(report.rows),
                                target.directory));
  if (report.entries == 0 && report.rows != 0) {
    // After the line that it refers to, if both streams are the same.
    output->Flush().IgnoreError();
    std::fprintf(
        stderr,
        "cairn: warning: %sno row has a key, so the index is empty; check its source: '%s'\n",
        name.c_str(), target.spec.ToString().c_str());
  }
  if (report.rows_without_key != 0) {
    output->Write(
        absl::StrFormat("%s%s rows have no key\n", name, WithCommas(report.rows_without_key)));
  }
  if (report.rows_skipped != 0) {
    output->Write(absl::StrFormat("%s%s rows could not be read and were skipped; the first: %s\n",
                                  name, WithCommas(report.rows_skipped), report.first_skipped));
  }
}

// Builds one after the other, each in a separate pass.
absl::StatusOr<std::vector<BuildReport>> BuildInShards(const SnapshotSource& source,
                                                       const std::vector<BuildTarget>& targets,
                                                       uint32_t shards,
                                                       const BuildOptions& options) {
  std::vector<BuildReport> reports;
  for (const BuildTarget& target : targets) {
    ShardedBuildOptions sharded;
    sharded.shards = shards;
    sharded.build = options;
    ASSIGN_OR_RETURN(BuildReport report,
                     BuildSharded(source, target.spec, target.directory, sharded));
    reports.push_back(std::move(report));
  }
  return reports;
}

// Builds the indexes of one column family.
absl::Status BuildFrom(const BuildOptionsGiven& given, const std::vector<BuildTarget>& targets,
                       Output* output) {
  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotSource> source,
                   OpenSource(given.source, targets[0].spec.column_family));
  BuildOptions options;
  options.threads = given.threads;
  options.memory_budget = given.memory_budget;
  options.prebuild_search_structure = given.prebuild_search_structure;
  options.cancelled = &Interrupted();
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<std::vector<BuildReport>> reports;
  {
    BuildProgress progress;
    options.on_progress = [&progress](const Progress& now) { progress.Show(now); };
    reports = given.shards == 0 ? SecondaryIndex::BuildAll(*source, targets, options)
                                : BuildInShards(*source, targets, given.shards, options);
  }
  if (!reports.ok()) return reports.status();
  for (size_t i = 0; i < targets.size(); ++i) PrintReport(targets[i], (*reports)[i], output);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  output->Write(absl::StrFormat("built from %s in %.2f s\n", source->description(), seconds));
  return absl::OkStatus();
}

absl::StatusOr<int> RunBuild(const BuildOptionsGiven& given) {
  if (!given.source.given()) {
    return UsageError("no input: expected one of --db, --checkpoint or --sst");
  }
  ASSIGN_OR_RETURN(std::vector<BuildTarget> targets, Targets(given));
  OutDirectory out;
  if (targets.size() > 1) {
    RETURN_IF_ERROR(out.Make(given.out));
  }
  // One pass over each column family, in the order in which the specs name them.
  Output output;
  while (!targets.empty()) {
    const std::string column_family = targets.front().spec.column_family;
    std::vector<BuildTarget> now, later;
    for (BuildTarget& target : targets) {
      (target.spec.column_family == column_family ? now : later).push_back(std::move(target));
    }
    RETURN_IF_ERROR(BuildFrom(given, now, &output));
    targets = std::move(later);
  }
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

}  // namespace

void AddBuildCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<BuildOptionsGiven>();
  CLI::App* command = app->add_subcommand("build", "Builds indexes from a database or its files");
  AddSourceOptions(command, &given->source);
  command->add_option("--cf", given->column_family, "The column family (default: 'default')")
      ->type_name("NAME");
  given->specs =
      AddValues(command, "--spec", "SPEC", "The spec of an index; may be repeated")->required();
  command
      ->add_option("--out", given->out,
                   "The index's directory; with several specs, the parent of theirs, each named "
                   "after its spec")
      ->type_name("DIR")
      ->required();
  command->add_option("--threads", given->threads, "Threads (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--shards", given->shards,
                   "Build a sharded index with N shards of equal size, by key range")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16));
  command
      ->add_option("--memory-budget", given->memory_budget,
                   "Memory for entries that wait to be sorted, like 512M or 4G (default: half of "
                   "the machine's)")
      ->type_name("BYTES")
      ->transform(Bytes());
  command->add_flag(
      "--prebuild-search-structure", given->prebuild_search_structure,
      "Store the search structure of numeric keys, so that opening the index maps it; the "
      "file is nearly twice as large");
  command->add_flag("--unique", given->unique, "Two rows with the same key are an error");
  command->add_option("--nulls", given->nulls, "Rows without a value: skip, first or last")
      ->type_name("WHERE")
      ->check(CLI::IsMember({"skip", "first", "last"}));
  command->add_option("--on-error", given->on_error, "Rows that cannot be read: fail or skip")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"fail", "skip"}));
  command->footer(R"(
A spec is [name=] source:type {, source:type} {, option}
  sources  key  key[4:8]  value  value[8:4]  value.field('|', 4)  value.json('/address/city')
           column('city')
  types    u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 text bytes; of raw bytes with le or be: u32le
  options  cf=NAME  unique=true  nulls=skip|first|last  on_error=fail|skip
           dropped_rows=refuse|ignore
           include(name=source:type {, name=source:type}): columns for cairn query --select
--cf, --unique, --nulls and --on-error apply to specs that do not have these options.

If a directory contains an index, it gets the next version; processes that have the index open keep
reading the old one.

Examples:
  cairn build --db=/tmp/db --cf=customer --spec="value.field('|',4):text" --out=/tmp/phone
  cairn build --checkpoint=/data/cp --out=/data/indexes \
    --spec="phone=value.field('|',4):text,cf=customer" \
    --spec="nation_balance=value.field('|',3):u8,value.field('|',5):f64,cf=customer"
  cairn build --sst 000012.sst 000017.sst --spec="value[0:8]:u64be" --out=/tmp/by_id)");
  command->callback([given, action] { *action = [given] { return RunBuild(*given); }; });
}

}  // namespace cairn::tools
