// cairn shard-cut, shard-extract, shard-split, shard-build, shard-publish: the steps of building a
// sharded index, each a separate process.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/print/output.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

struct StepOptions {
  int threads = 0;
  uint64_t memory_budget = 0;
  bool prebuild_search_structure = false;

  BuildOptions Build() const {
    BuildOptions options;
    options.prebuild_search_structure = prebuild_search_structure;
    options.threads = threads;
    options.memory_budget = memory_budget;
    options.cancelled = &Interrupted();
    return options;
  }
};

void AddThreads(CLI::App* command, StepOptions* options) {
  command->add_option("--threads", options->threads, "Threads (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

absl::StatusOr<int> PrintLine(const std::string& line) {
  Output output;
  output.Write(line + "\n");
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

// The value of a hexadecimal digit, or a negative number.
int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Parses a primary key in the format of AppendEscaped.
absl::StatusOr<std::string> ReadPrimaryKey(std::string_view text) {
  std::string key;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      key += text[i];
      continue;
    }
    const bool escape = text.size() - i >= 4 && text[i + 1] == 'x' && HexDigit(text[i + 2]) >= 0 &&
                        HexDigit(text[i + 3]) >= 0;
    if (!escape) {
      return UsageError(absl::StrFormat("'%s': expected \\xHH after a backslash", text));
    }
    key += static_cast<char>(HexDigit(text[i + 2]) * 16 + HexDigit(text[i + 3]));
    i += 3;
  }
  return key;
}

struct CutOptions : StepOptions {
  SourceOptions source;
  std::string column_family = "default";
  uint32_t parts = 1;
};

absl::StatusOr<int> RunCut(const CutOptions& given) {
  if (!given.source.given()) {
    return UsageError("no input: expected one of --db, --checkpoint or --sst");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                   OpenSource(given.source, given.column_family));
  ASSIGN_OR_RETURN(const std::vector<PrimaryKeyRange> ranges,
                   source->Split(static_cast<int>(given.parts)));
  Output output;
  for (size_t i = 1; i < ranges.size(); ++i) {
    std::string line;
    AppendEscaped(ranges[i].lower, &line);
    output.Write(line + "\n");
  }
  RETURN_IF_ERROR(output.Flush());
  return kGood;
}

struct ExtractOptions : StepOptions {
  SourceOptions source;
  std::string spec, out;
  uint32_t part = 0;
  std::string from;
  CLI::Option* to = nullptr;  // null: to the end
};

absl::StatusOr<int> RunExtract(const ExtractOptions& given) {
  if (!given.source.given()) {
    return UsageError("no input: expected one of --db, --checkpoint or --sst");
  }
  PrimaryKeyRange range;
  ASSIGN_OR_RETURN(range.lower, ReadPrimaryKey(given.from));
  range.open = given.to->count() == 0;
  if (!range.open) {
    ASSIGN_OR_RETURN(range.upper, ReadPrimaryKey(given.to->results()[0]));
  }
  const absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(given.spec);
  if (!spec.ok()) {
    return UsageError(
        absl::StrFormat("--spec \"%s\": %s", given.spec, std::string(spec.status().message())));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                   OpenSource(given.source, spec->column_family));
  const std::string directory = given.out + "/" + SegmentDirectoryName(given.part);
  RETURN_IF_ERROR(ExtractSegment(*source, range, *spec, directory, given.Build()).status());
  return PrintLine(directory);
}

struct SplitOptions : StepOptions {
  std::vector<std::string> segments;
  std::string plan;
  uint32_t shards = 1;
};

absl::StatusOr<int> RunSplit(const SplitOptions& given) {
  RETURN_IF_ERROR(SplitSegments(given.segments, given.shards, given.plan, given.Build()));
  ASSIGN_OR_RETURN(const uint32_t shards, ShardsOfPlan(given.plan, given.Build()));
  return PrintLine(std::to_string(shards));
}

struct ShardOptions : StepOptions {
  std::string plan, out;
  uint32_t shard = 0;
};

absl::StatusOr<int> RunShard(const ShardOptions& given) {
  const std::string directory = given.out + "/" + ShardDirectoryName(given.shard);
  RETURN_IF_ERROR(BuildShard(given.plan, given.shard, directory, given.Build()).status());
  return PrintLine(directory);
}

struct PublishOptions : StepOptions {
  std::string plan, directory;
  std::vector<std::string> sources;
};

absl::StatusOr<int> RunPublish(const PublishOptions& given) {
  if (given.plan.empty() == given.sources.empty()) {
    return UsageError(
        "nothing to publish: expected --plan, or --by-source with the names of the shards");
  }
  RETURN_IF_ERROR(given.plan.empty() ? PublishSources(given.sources, given.directory, given.Build())
                                     : PublishShards(given.plan, given.directory, given.Build()));
  return kGood;
}

void AddCut(CLI::App* app, Action* action) {
  auto given = std::make_shared<CutOptions>();
  CLI::App* command = app->add_subcommand(
      "shard-cut", "Before a sharded index: prints where to cut a source's rows into parts");
  AddSourceOptions(command, &given->source);
  command->add_option("--cf", given->column_family, "The column family (default: 'default')")
      ->type_name("NAME");
  command->add_option("--parts", given->parts, "The number of parts")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16))
      ->required();
  command->footer(R"(
Prints the primary keys between the parts, one per line, with \xHH for unprintable bytes: one less
than the number of parts, or fewer. The cuts are estimates, and may differ from run to run.)");
  command->callback([given, action] { *action = [given] { return RunCut(*given); }; });
}

void AddExtract(CLI::App* app, Action* action) {
  auto given = std::make_shared<ExtractOptions>();
  CLI::App* command = app->add_subcommand(
      "shard-extract",
      "Step 1 of a sharded index: extracts a part of a source's rows to a segment");
  AddSourceOptions(command, &given->source);
  command->add_option("--spec", given->spec, "The spec of the index")
      ->type_name("SPEC")
      ->required();
  command->add_option("--from", given->from, "The first primary key (default: from the beginning)")
      ->type_name("KEY");
  given->to = command->add_option("--to", "The end of the part, exclusive (default: to the end)")
                  ->type_name("KEY");
  command->add_option("--part", given->part, "The part's number, for the segment's name")
      ->type_name("N");
  command->add_option("--out", given->out, "The directory in which the segment is created")
      ->type_name("DIR")
      ->required();
  AddThreads(command, given.get());
  command
      ->add_option("--memory-budget", given->memory_budget,
                   "Memory for entries that wait to be sorted, like 512M or 4G (default: half of "
                   "the machine's)")
      ->type_name("BYTES")
      ->transform(Bytes());
  command->footer(R"(
Prints the segment's directory, which is unique to this attempt. A database must not change between
parts, so use a checkpoint. Any byte of a key may be \xHH, as in the output of shard-cut.

Example, all steps:
  cairn shard-cut --checkpoint=/data/cp --parts=2        (prints one key: m, say)
  spec="--spec=value[0:8]:u64be"
  cairn shard-extract --checkpoint=/data/cp "$spec" --to=m --part=0 --out=/work
  cairn shard-extract --checkpoint=/data/cp "$spec" --from=m --part=1 --out=/work
  cairn shard-split --shards=4 --plan=/work/plan /work/segment-0.* /work/segment-1.*
  cairn shard-build --plan=/work/plan --shard=0 --out=/data/index   (and 1, 2, 3)
  cairn shard-publish --plan=/work/plan --out=/data/index)");
  command->callback([given, action] { *action = [given] { return RunExtract(*given); }; });
}

void AddSplit(CLI::App* app, Action* action) {
  auto given = std::make_shared<SplitOptions>();
  CLI::App* command = app->add_subcommand(
      "shard-split", "Step 2 of a sharded index: plans where to cut segments into equal shards");
  command->add_option("SEGMENT", given->segments, "The segments, in the order of their parts")
      ->required();
  command->add_option("--shards", given->shards, "The number of shards")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16))
      ->required();
  command->add_option("--plan", given->plan, "The file to write")->type_name("FILE")->required();
  AddThreads(command, given.get());
  command->footer("\nPrints the number of shards, which is lower if there are fewer entries.");
  command->callback([given, action] { *action = [given] { return RunSplit(*given); }; });
}

void AddBuildShard(CLI::App* app, Action* action) {
  auto given = std::make_shared<ShardOptions>();
  CLI::App* command = app->add_subcommand(
      "shard-build", "Step 3 of a sharded index: builds one shard from its part of the segments");
  command->add_option("--plan", given->plan, "The file that shard-split wrote")
      ->type_name("FILE")
      ->required();
  command->add_option("--shard", given->shard, "The number of the shard, from 0")
      ->type_name("N")
      ->required();
  command->add_option("--out", given->out, "The index's directory, which must exist")
      ->type_name("DIR")
      ->required();
  AddThreads(command, given.get());
  command->add_flag(
      "--prebuild-search-structure", given->prebuild_search_structure,
      "Store the search structure of numeric keys, so that opening the index maps it; the "
      "file is nearly twice as large");
  command->footer("\nPrints the shard's directory, which is unique to this attempt.");
  command->callback([given, action] { *action = [given] { return RunShard(*given); }; });
}

void AddPublish(CLI::App* app, Action* action) {
  auto given = std::make_shared<PublishOptions>();
  CLI::App* command = app->add_subcommand(
      "shard-publish",
      "Step 4 of a sharded index: verifies all shards and publishes them atomically");
  command->add_option("--plan", given->plan, "The file that shard-split wrote")->type_name("FILE");
  command
      ->add_option(
          "--by-source", given->sources,
          "Instead of --plan: the names, in the directory, of indexes of different databases")
      ->type_name("NAME");
  command->add_option("--out", given->directory, "The index's directory, with the shards")
      ->type_name("DIR")
      ->required();
  AddThreads(command, given.get());
  command->footer(R"(
Readers of the previous generation keep reading it. If there are several attempts at one shard, any
complete one is used, and the others are removed; all must have ended.)");
  command->callback([given, action] { *action = [given] { return RunPublish(*given); }; });
}

}  // namespace

void AddShardCommands(CLI::App* app, Action* action) {
  AddCut(app, action);
  AddExtract(app, action);
  AddSplit(app, action);
  AddBuildShard(app, action);
  AddPublish(app, action);
}

}  // namespace cairn::tools
