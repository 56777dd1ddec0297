#include "engine/version/base_columns.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/extract/included_columns.h"
#include "index/files/index_directory.h"
#include "index/machine/status_macros.h"

namespace cairn {

absl::StatusOr<std::optional<ColumnFile>> OpenBaseColumns(const std::string& directory,
                                                          const Manifest& manifest,
                                                          const IndexSpec& spec, VerifyLevel level,
                                                          int threads, FileSystem* files) {
  if (spec.include.empty()) return std::nullopt;
  const ManifestFile* const named = manifest.FindFile("columns");
  if (named == nullptr) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': the manifest lists no columns file", directory));
  }
  ASSIGN_OR_RETURN(ColumnFile columns,
                   OpenColumnFile(directory + "/" + named->name, level, threads, files));
  RETURN_IF_ERROR(CheckIsManifestFile(*named, columns.file));
  if (columns.table.rows() != manifest.rows) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': the manifest has %d rows, its columns have %d", directory,
                        manifest.rows, columns.table.rows()));
  }
  if (columns.table.columns() != IncludedColumns(spec)) {
    return absl::DataLossError(absl::StrFormat(
        "index '%s': its column file does not have the columns that its spec includes", directory));
  }
  return columns;
}

}  // namespace cairn
