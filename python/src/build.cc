// Builds: cairn._cairn.build.
#include "python/src/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "python/src/base/errors.h"
#include "python/src/in/arguments.h"
#include "python/src/source.h"
#include "python/src/watched.h"

namespace cairn::python {
namespace {

std::vector<BuildReport> Build(nb::handle source,
                               const std::vector<std::pair<nb::object, std::string>>& specs,
                               Argument<std::optional<std::string>, "column_family"> family_given,
                               ThreadsArg<"threads"> threads,
                               NaturalArg<"memory_budget"> memory_budget,
                               BoolArg<"prebuild_search_structure"> prebuild_search_structure,
                               nb::handle progress) {
  std::optional<std::string> column_family = *family_given;
  std::vector<BuildTarget> targets;
  for (const auto& [directory, spec] : specs) {
    targets.push_back({ValueOf(IndexSpec::Parse(spec)), PathOf(directory, "specs")});
    const std::string& family = targets.back().spec.column_family;
    if (!column_family.has_value() || *column_family == "default") column_family = family;
    if (family != "default" && family != *column_family) {
      ThrowInvalid("specs: expected one column family, found '" + *column_family + "' and '" +
                   family + "'");
    }
  }
  if (targets.empty()) ThrowInvalid("specs: expected at least one index to build, found none");
  for (BuildTarget& target : targets) target.spec.column_family = *column_family;
  const auto from = SourceOf(source, "source", *column_family);
  std::vector<BuildReport> reports;
  BuildOptions options;
  options.threads = *threads;
  options.memory_budget = *memory_budget;
  options.prebuild_search_structure = *prebuild_search_structure;
  RunWatched(progress, [&](const Watch& watch) {
    options.on_progress = watch.on_progress;
    options.cancelled = watch.cancelled;
    auto built = SecondaryIndex::BuildAll(*from, targets, options);
    if (built.ok()) reports = *std::move(built);
    return built.status();
  });
  return reports;
}

}  // namespace

void BindBuild(nb::module_& module) {
  nb::class_<BuildReport>(module, "BuildReport", "The result of a build.")
      .def_ro("rows", &BuildReport::rows, "Rows in the column family.")
      .def_ro("entries", &BuildReport::entries)
      .def_ro("rows_skipped", &BuildReport::rows_skipped,
              "Rows that could not be read (on_error=skip).")
      .def_ro("rows_without_key", &BuildReport::rows_without_key)
      .def_ro("first_skipped", &BuildReport::first_skipped,
              "The first skipped row's primary key, and the reason.")
      .def("__repr__", [](const BuildReport& report) {
        return "<cairn.BuildReport: " + std::to_string(report.rows) + " rows, " +
               std::to_string(report.entries) + " entries>";
      });
  module.def("build", &Build, nb::arg("source").none(), nb::arg("specs"),
             nb::arg("column_family").none(), nb::arg("threads"), nb::arg("memory_budget"),
             nb::arg("prebuild_search_structure"), nb::arg("progress").none(),
             nb::sig("def build(source: typing.Any, specs: list[tuple[str, str]], "
                     "column_family: str | None, "
                     "threads: int, memory_budget: int, prebuild_search_structure: bool, progress: "
                     "typing.Any) -> "
                     "list[BuildReport]"));
}

}  // namespace cairn::python
