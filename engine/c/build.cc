// Sources and builds.
#include "cairn/options.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "cairn/key_order.h"
#include "cairn/snapshot_source.h"
#include "engine/c/error.h"
#include "engine/c/handles.h"
#include "engine/c/progress.h"
#include "index/machine/status_macros.h"

struct cairn_build_reports {
  std::vector<cairn::BuildReport> reports;
  std::vector<cairn_build_report> shown;  // C structures of `reports`
};

namespace cairn {
namespace {

absl::StatusOr<std::vector<BuildTarget>> ReadTargets(const cairn_build_target* targets,
                                                     size_t count) {
  std::vector<BuildTarget> read;
  if (count > 0) RETURN_IF_ERROR(CheckNotNull(targets, "targets"));
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(CheckNotNull(targets[i].spec, "spec", targets[i].directory, "directory"));
    absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(targets[i].spec);
    if (!spec.ok()) {
      return absl::Status(spec.status().code(),
                          absl::StrFormat("target %d: spec: %s", i, spec.status().message()));
    }
    read.push_back({*std::move(spec), targets[i].directory});
  }
  return read;
}

std::unique_ptr<cairn_build_reports> ShowReports(std::vector<BuildReport> reports) {
  auto shown = std::make_unique<cairn_build_reports>();
  shown->reports = std::move(reports);
  for (const BuildReport& report : shown->reports) {
    shown->shown.push_back({sizeof(cairn_build_report), report.rows, report.entries,
                            report.rows_skipped, report.rows_without_key,
                            report.first_skipped.c_str()});
  }
  return shown;
}

absl::Status DoBuild(const cairn_source* source, const cairn_build_target* targets, size_t count,
                     const cairn_build_options* given, cairn_build_reports** reports) {
  RETURN_IF_ERROR(CheckNotNull(source, "source"));
  ASSIGN_OR_RETURN(const std::vector<BuildTarget> read, ReadTargets(targets, count));
  ASSIGN_OR_RETURN(const cairn_build_options given_options, ReadOptions(given, "options"));
  BuildOptions options;
  RETURN_IF_ERROR(ReadThreads(given_options.threads, &options.threads));
  options.memory_budget = given_options.memory_budget;
  options.prebuild_search_structure = given_options.prebuild_search_structure != 0;
  options.on_progress = OnProgress(given_options.on_progress, given_options.context);
  if (given_options.cancel != nullptr) options.cancelled = &given_options.cancel->set;
  ASSIGN_OR_RETURN(std::vector<BuildReport> built,
                   SecondaryIndex::BuildAll(*source->source, read, options));
  if (reports != nullptr) *reports = ShowReports(std::move(built)).release();
  return absl::OkStatus();
}

absl::Status OpenDirectory(const char* directory, const char* column_family,
                           cairn_source** source) {
  RETURN_IF_ERROR(CheckNotNull(directory, "directory", source, "source"));
  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotSource> opened,
                   SnapshotSource::FromDirectory(
                       directory, column_family == nullptr ? "default" : column_family));
  *source = new cairn_source{std::move(opened)};
  return absl::OkStatus();
}

absl::Status OpenSstFiles(const char* const* files, size_t count, const char* scratch_directory,
                          cairn_source** source) {
  RETURN_IF_ERROR(CheckNotNull(source, "source"));
  if (count > 0) RETURN_IF_ERROR(CheckNotNull(files, "files"));
  std::vector<std::string> paths;
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(CheckNotNull(files[i], "files"));
    paths.emplace_back(files[i]);
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<SnapshotSource> opened,
      SnapshotSource::FromSstFiles(paths, scratch_directory == nullptr ? "" : scratch_directory));
  *source = new cairn_source{std::move(opened)};
  return absl::OkStatus();
}

}  // namespace

std::function<void(const Progress&)> OnProgress(cairn_on_progress on_progress, void* context) {
  if (on_progress == nullptr) return nullptr;
  return [on_progress, context](const Progress& progress) {
    const cairn_progress shown = {sizeof shown, static_cast<int32_t>(progress.phase), progress.done,
                                  progress.total};
    on_progress(context, &shown);
  };
}

}  // namespace cairn

cairn_error* cairn_declare_comparator(const char* name, int32_t reverse) {
  return cairn::CFunction("declaring a comparator", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(name, "name"));
    return cairn::DeclareComparator(
        name, reverse != 0 ? cairn::KeyOrder::kReverseBytewise : cairn::KeyOrder::kBytewise);
  });
}

cairn_error* cairn_source_from_directory(const char* directory, const char* column_family,
                                         cairn_source** source) {
  return cairn::CFunction("opening a database",
                          [&] { return cairn::OpenDirectory(directory, column_family, source); });
}

cairn_error* cairn_source_from_sst_files(const char* const* files, size_t count,
                                         const char* scratch_directory, cairn_source** source) {
  return cairn::CFunction("opening SST files", [&] {
    return cairn::OpenSstFiles(files, count, scratch_directory, source);
  });
}

uint64_t cairn_source_sequence(const cairn_source* source) {
  return source == nullptr ? 0 : source->source->sequence();
}

void cairn_source_free(cairn_source* source) {
  delete source;
}

cairn_error* cairn_build(const cairn_source* source, const cairn_build_target* targets,
                         size_t count, const cairn_build_options* options,
                         cairn_build_reports** reports) {
  return cairn::CFunction("building indexes",
                          [&] { return cairn::DoBuild(source, targets, count, options, reports); });
}

const cairn_build_report* cairn_build_reports_at(const cairn_build_reports* reports, size_t i) {
  return reports != nullptr && i < reports->shown.size() ? &reports->shown[i] : nullptr;
}

void cairn_build_reports_free(cairn_build_reports* reports) {
  delete reports;
}
