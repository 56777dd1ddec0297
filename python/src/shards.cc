// The steps of building a sharded index, for cairn.shards.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/options.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/bindings.h"
#include "python/src/in/arguments.h"
#include "python/src/shard_map.h"
#include "python/src/source.h"
#include "python/src/watched.h"

namespace cairn::python {
namespace {

// The arguments of all steps other than their inputs.
struct StepArguments {
  Threads threads;
  uint64_t memory_budget;
  nb::handle progress;
  bool prebuild_search_structure = false;
};
using StepThreads = ThreadsArg<"threads">;
using StepBudget = NaturalArg<"memory_budget">;
using StoreLeaves = BoolArg<"prebuild_search_structure">;
using SpecArg = TextArg<"spec">;

// Runs a step, which Ctrl-C ends.
void RunStep(const StepArguments& arguments,
             const std::function<absl::Status(const BuildOptions&)>& step) {
  LeaveForksAtOnce();
  RunWatched(arguments.progress, [&](const Watch& watch) {
    BuildOptions options;
    options.threads = arguments.threads;
    options.memory_budget = arguments.memory_budget;
    options.prebuild_search_structure = arguments.prebuild_search_structure;
    options.on_progress = watch.on_progress;
    options.cancelled = watch.cancelled;
    return step(options);
  });
}

// As RunStep, for a step that returns a report.
BuildReport RunBuild(const StepArguments& arguments,
                     const std::function<absl::StatusOr<BuildReport>(const BuildOptions&)>& step) {
  BuildReport report;
  RunStep(arguments, [&](const BuildOptions& options) {
    absl::StatusOr<BuildReport> built = step(options);
    if (built.ok()) report = *std::move(built);
    return built.status();
  });
  return report;
}

std::string BytesOf(nb::handle object, const char* what) {
  if (!PyBytes_Check(object.ptr())) {
    ThrowInvalid(std::string("range: expected bytes as its ") + what + ", as of Snapshot.split");
  }
  const nb::bytes bytes = nb::borrow<nb::bytes>(object);
  return {bytes.c_str(), bytes.size()};
}

PrimaryKeyRange RangeOf(nb::handle object) {
  if (!PyTuple_Check(object.ptr()) || nb::len(object) != 2) {
    ThrowInvalid("range: expected a pair (lower, upper) of Snapshot.split");
  }
  PrimaryKeyRange range;
  range.lower = BytesOf(object[0], "lower end");
  const nb::object upper = object[1];
  range.open = upper.is_none();
  if (!range.open) range.upper = BytesOf(upper, "upper end");
  return range;
}

template <Name kName>
using ShardNumber = Argument<uint32_t, kName>;

std::vector<std::string> PathsOf(const std::vector<nb::object>& objects,
                                 const std::string& argument) {
  std::vector<std::string> paths;
  paths.reserve(objects.size());
  for (const nb::object& object : objects) {
    paths.push_back(PathOf(object, argument + "[" + std::to_string(paths.size()) + "]"));
  }
  return paths;
}

BuildReport Extract(nb::handle source, nb::handle range, const std::string& spec,
                    nb::handle directory, const StepArguments& arguments) {
  const IndexSpec parsed = ValueOf(IndexSpec::Parse(spec));
  const PrimaryKeyRange of = RangeOf(range);
  const std::string to = PathOf(directory, "directory");
  const auto from = SourceOf(source, "source", parsed.column_family);
  return RunBuild(arguments, [&](const BuildOptions& options) {
    return ExtractSegment(*from, of, parsed, to, options);
  });
}

BuildReport BuildAllShards(nb::handle source, const std::string& spec, nb::handle directory,
                           uint32_t shards, uint32_t segments, const StepArguments& arguments) {
  const IndexSpec parsed = ValueOf(IndexSpec::Parse(spec));
  const std::string to = PathOf(directory, "directory");
  const auto from = SourceOf(source, "source", parsed.column_family);
  ShardedBuildOptions sharded;
  sharded.shards = shards;
  sharded.segments = segments;
  return RunBuild(arguments, [&](const BuildOptions& options) {
    sharded.build = options;
    return BuildSharded(*from, parsed, to, sharded);
  });
}

uint32_t PlannedShards(const std::string& plan) {
  absl::StatusOr<uint32_t> shards = uint32_t{0};
  {
    const GilReleased released;
    shards = ShardsOfPlan(plan, {});
  }
  return ValueOf(std::move(shards));
}

}  // namespace

#define CAIRN_STEP_ARGS nb::arg("threads"), nb::arg("memory_budget"), nb::arg("progress").none()
#define CAIRN_STEP_SIG "threads: int, memory_budget: int, progress: typing.Any) -> "

void BindShards(nb::module_& module) {
  using Paths = std::vector<nb::object>;
  module.def(
      "extract_segment",
      [](nb::handle source, nb::handle range, SpecArg spec, nb::handle directory,
         StepThreads threads, StepBudget budget, nb::handle progress) {
        return Extract(source, range, *spec, directory, {*threads, *budget, progress});
      },
      nb::arg("source").none(), nb::arg("range").none(), nb::arg("spec"),
      nb::arg("directory").none(), CAIRN_STEP_ARGS,
      nb::sig("def extract_segment(source: typing.Any, range: tuple[bytes, bytes | None], spec: "
              "str, directory: str | os.PathLike[str], " CAIRN_STEP_SIG "BuildReport"));
  module.def(
      "split_segments",
      [](const Paths& segments, ShardNumber<"shards"> shards, nb::handle plan, StepThreads threads,
         StepBudget budget, nb::handle progress) {
        const std::vector<std::string> paths = PathsOf(segments, "segments");
        const uint32_t number = *shards;
        const std::string to = PathOf(plan, "plan");
        RunStep({*threads, *budget, progress}, [&](const BuildOptions& options) {
          return SplitSegments(paths, number, to, options);
        });
        return PlannedShards(to);
      },
      nb::arg("segments").none(), nb::arg("shards"), nb::arg("plan").none(), CAIRN_STEP_ARGS,
      nb::sig("def split_segments(segments: list[str], shards: int, plan: str | "
              "os.PathLike[str], " CAIRN_STEP_SIG "int"));
  module.def(
      "shards_of_plan", [](nb::handle plan) { return PlannedShards(PathOf(plan, "plan")); },
      nb::arg("plan").none(), nb::sig("def shards_of_plan(plan: str | os.PathLike[str]) -> int"));
  module.def(
      "build_shard",
      [](nb::handle plan, ShardNumber<"shard"> shard, nb::handle directory,
         StoreLeaves prebuild_search_structure, StepThreads threads, StepBudget budget,
         nb::handle progress) {
        const std::string from = PathOf(plan, "plan"), to = PathOf(directory, "directory");
        const uint32_t number = *shard;
        return RunBuild(
            {*threads, *budget, progress, *prebuild_search_structure},
            [&](const BuildOptions& options) { return BuildShard(from, number, to, options); });
      },
      nb::arg("plan").none(), nb::arg("shard"), nb::arg("directory").none(),
      nb::arg("prebuild_search_structure"), CAIRN_STEP_ARGS,
      nb::sig("def build_shard(plan: str | os.PathLike[str], shard: int, directory: str | "
              "os.PathLike[str], prebuild_search_structure: bool, " CAIRN_STEP_SIG "BuildReport"));
  module.def(
      "publish_shards",
      [](nb::handle plan, nb::handle directory, StepThreads threads, StepBudget budget,
         nb::handle progress) {
        const std::string from = PathOf(plan, "plan"), to = PathOf(directory, "directory");
        RunStep({*threads, *budget, progress},
                [&](const BuildOptions& options) { return PublishShards(from, to, options); });
      },
      nb::arg("plan").none(), nb::arg("directory").none(), CAIRN_STEP_ARGS,
      nb::sig("def publish_shards(plan: str | os.PathLike[str], directory: str | "
              "os.PathLike[str], " CAIRN_STEP_SIG "None"));
  module.def(
      "publish_sources",
      [](const Paths& names, nb::handle directory, StepThreads threads, StepBudget budget,
         nb::handle progress) {
        const std::vector<std::string> shards = PathsOf(names, "names");
        const std::string to = PathOf(directory, "directory");
        RunStep({*threads, *budget, progress},
                [&](const BuildOptions& options) { return PublishSources(shards, to, options); });
      },
      nb::arg("names").none(), nb::arg("directory").none(), CAIRN_STEP_ARGS,
      nb::sig(
          "def publish_sources(names: list[str], directory: str | os.PathLike[str], " CAIRN_STEP_SIG
          "None"));
  module.def(
      "build_sharded",
      [](nb::handle source, SpecArg spec, nb::handle directory, ShardNumber<"shards"> shards,
         ShardNumber<"segments"> segments, StoreLeaves prebuild_search_structure,
         StepThreads threads, StepBudget budget, nb::handle progress) {
        return BuildAllShards(source, *spec, directory, *shards, *segments,
                              {*threads, *budget, progress, *prebuild_search_structure});
      },
      nb::arg("source").none(), nb::arg("spec"), nb::arg("directory").none(), nb::arg("shards"),
      nb::arg("segments").none(), nb::arg("prebuild_search_structure"), CAIRN_STEP_ARGS,
      nb::sig("def build_sharded(source: typing.Any, spec: str, directory: str | "
              "os.PathLike[str], shards: int, segments: int, prebuild_search_structure: "
              "bool, " CAIRN_STEP_SIG "BuildReport"));
  module.def(
      "shard_directory_name", [](ShardNumber<"shard"> shard) { return ShardDirectoryName(*shard); },
      nb::arg("shard"), nb::sig("def shard_directory_name(shard: int) -> str"),
      "A new name in the index's directory for an attempt at a shard; different for each "
      "call.");
  module.def(
      "segment_directory_name",
      [](ShardNumber<"segment"> segment) { return SegmentDirectoryName(*segment); },
      nb::arg("segment"), nb::sig("def segment_directory_name(segment: int) -> str"),
      "As shard_directory_name, for a segment.");
  module.def(
      "column_family_of",
      [](SpecArg spec) { return ValueOf(IndexSpec::Parse(*spec)).column_family; }, nb::arg("spec"),
      nb::sig("def column_family_of(spec: str) -> str"), "The column family that a spec names.");
  BindShardMap(module);
}

}  // namespace cairn::python
