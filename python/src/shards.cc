// The steps that build an index in shards: what cairn.shards calls.
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

#include "cairn/build.h"
#include "cairn/snapshot_source.h"
#include "python/src/base/errors.h"
#include "python/src/bindings.h"
#include "python/src/shard_map.h"
#include "python/src/source.h"
#include "python/src/watched.h"

namespace cairn::python {
namespace {

// What all steps are given besides their inputs.
struct StepArguments {
  int threads;
  uint64_t memory_budget;
  nb::handle progress;
  bool store_leaves = false;
};

// Runs a step so that Ctrl-C ends it.
void RunStep(const StepArguments& arguments,
             const std::function<absl::Status(const BuildOptions&)>& step) {
  LeaveForksAtOnce();
  RunWatched(arguments.progress, [&](const Watch& watch) {
    BuildOptions options;
    options.threads = arguments.threads;
    options.memory_budget = arguments.memory_budget;
    options.store_leaves = arguments.store_leaves;
    options.on_progress = watch.on_progress;
    options.cancelled = watch.cancelled;
    return step(options);
  });
}

// The same of one that reports what it did.
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

uint32_t NumberOf(int64_t number, const char* argument) {
  if (number < 0 || number > INT64_C(0xffffffff)) {
    ThrowInvalid(std::string(argument) + ": expected a number from 0 to 2^32 - 1, found " +
                 std::to_string(number));
  }
  return static_cast<uint32_t>(number);
}

std::vector<std::string> PathsOf(const std::vector<nb::object>& objects) {
  std::vector<std::string> paths;
  paths.reserve(objects.size());
  for (const nb::object& object : objects) paths.push_back(PathOf(object));
  return paths;
}

BuildReport Extract(nb::handle source, nb::handle range, const std::string& spec,
                    nb::handle directory, const StepArguments& arguments) {
  const IndexSpec parsed = ValueOf(IndexSpec::Parse(spec));
  const PrimaryKeyRange of = RangeOf(range);
  const std::string to = PathOf(directory);
  const auto from = SourceOf(source, parsed.column_family);
  return RunBuild(arguments, [&](const BuildOptions& options) {
    return ExtractSegment(*from, of, parsed, to, options);
  });
}

BuildReport BuildAllShards(nb::handle source, const std::string& spec, nb::handle directory,
                           int64_t shards, int64_t segments, const StepArguments& arguments) {
  const IndexSpec parsed = ValueOf(IndexSpec::Parse(spec));
  const std::string to = PathOf(directory);
  const auto from = SourceOf(source, parsed.column_family);
  ShardedBuildOptions sharded;
  sharded.shards = NumberOf(shards, "shards");
  sharded.segments = NumberOf(segments, "segments");
  return RunBuild(arguments, [&](const BuildOptions& options) {
    sharded.build = options;
    return BuildSharded(*from, parsed, to, sharded);
  });
}

uint32_t PlannedShards(const std::string& plan) {
  absl::StatusOr<uint32_t> shards = uint32_t{0};
  {
    const nb::gil_scoped_release released;
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
      [](nb::handle source, nb::handle range, const std::string& spec, nb::handle directory,
         int threads, uint64_t budget, nb::handle progress) {
        return Extract(source, range, spec, directory, {threads, budget, progress});
      },
      nb::arg("source"), nb::arg("range"), nb::arg("spec"), nb::arg("directory"), CAIRN_STEP_ARGS,
      nb::sig("def extract_segment(source: typing.Any, range: tuple[bytes, bytes | None], spec: "
              "str, directory: str | os.PathLike[str], " CAIRN_STEP_SIG "BuildReport"));
  module.def(
      "split_segments",
      [](const Paths& segments, int64_t shards, nb::handle plan, int threads, uint64_t budget,
         nb::handle progress) {
        const std::vector<std::string> paths = PathsOf(segments);
        const uint32_t number = NumberOf(shards, "shards");
        const std::string to = PathOf(plan);
        RunStep({threads, budget, progress}, [&](const BuildOptions& options) {
          return SplitSegments(paths, number, to, options);
        });
        return PlannedShards(to);
      },
      nb::arg("segments"), nb::arg("shards"), nb::arg("plan"), CAIRN_STEP_ARGS,
      nb::sig("def split_segments(segments: list[str], shards: int, plan: str | "
              "os.PathLike[str], " CAIRN_STEP_SIG "int"));
  module.def(
      "shards_of_plan", [](nb::handle plan) { return PlannedShards(PathOf(plan)); },
      nb::arg("plan"), nb::sig("def shards_of_plan(plan: str | os.PathLike[str]) -> int"));
  module.def(
      "build_shard",
      [](nb::handle plan, int64_t shard, nb::handle directory, bool store_leaves, int threads,
         uint64_t budget, nb::handle progress) {
        const std::string from = PathOf(plan), to = PathOf(directory);
        const uint32_t number = NumberOf(shard, "shard");
        return RunBuild(
            {threads, budget, progress, store_leaves},
            [&](const BuildOptions& options) { return BuildShard(from, number, to, options); });
      },
      nb::arg("plan"), nb::arg("shard"), nb::arg("directory"), nb::arg("store_leaves"),
      CAIRN_STEP_ARGS,
      nb::sig("def build_shard(plan: str | os.PathLike[str], shard: int, directory: str | "
              "os.PathLike[str], store_leaves: bool, " CAIRN_STEP_SIG "BuildReport"));
  module.def(
      "publish_shards",
      [](nb::handle plan, nb::handle directory, int threads, uint64_t budget, nb::handle progress) {
        const std::string from = PathOf(plan), to = PathOf(directory);
        RunStep({threads, budget, progress},
                [&](const BuildOptions& options) { return PublishShards(from, to, options); });
      },
      nb::arg("plan"), nb::arg("directory"), CAIRN_STEP_ARGS,
      nb::sig("def publish_shards(plan: str | os.PathLike[str], directory: str | "
              "os.PathLike[str], " CAIRN_STEP_SIG "None"));
  module.def(
      "publish_sources",
      [](const Paths& names, nb::handle directory, int threads, uint64_t budget,
         nb::handle progress) {
        const std::vector<std::string> shards = PathsOf(names);
        const std::string to = PathOf(directory);
        RunStep({threads, budget, progress},
                [&](const BuildOptions& options) { return PublishSources(shards, to, options); });
      },
      nb::arg("names"), nb::arg("directory"), CAIRN_STEP_ARGS,
      nb::sig(
          "def publish_sources(names: list[str], directory: str | os.PathLike[str], " CAIRN_STEP_SIG
          "None"));
  module.def(
      "build_sharded",
      [](nb::handle source, const std::string& spec, nb::handle directory, int64_t shards,
         int64_t segments, bool store_leaves, int threads, uint64_t budget, nb::handle progress) {
        return BuildAllShards(source, spec, directory, shards, segments,
                              {threads, budget, progress, store_leaves});
      },
      nb::arg("source"), nb::arg("spec"), nb::arg("directory"), nb::arg("shards"),
      nb::arg("segments"), nb::arg("store_leaves"), CAIRN_STEP_ARGS,
      nb::sig("def build_sharded(source: typing.Any, spec: str, directory: str | "
              "os.PathLike[str], shards: int, segments: int, store_leaves: bool, " CAIRN_STEP_SIG
              "BuildReport"));
  module.def(
      "shard_directory_name",
      [](int64_t shard) { return ShardDirectoryName(NumberOf(shard, "shard")); }, nb::arg("shard"),
      "What an attempt at a shard is to be called within its index's directory, different at each "
      "call.");
  module.def(
      "segment_directory_name",
      [](int64_t segment) { return SegmentDirectoryName(NumberOf(segment, "segment")); },
      nb::arg("segment"), "Likewise, of a segment.");
  module.def(
      "column_family_of",
      [](const std::string& spec) { return ValueOf(IndexSpec::Parse(spec)).column_family; },
      nb::arg("spec"), "The column family that a spec names.");
  BindShardMap(module);
}

}  // namespace cairn::python
