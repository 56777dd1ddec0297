#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/types.h"
#include "index/columns/column_file.h"
#include "index/files/file_system.h"
#include "index/files/manifest.h"

namespace cairn {

// Maps the columns of the index in `directory`, of which the manifest names the file; none where
// its spec includes none. DataLoss where the file is missing from the manifest, is another, or does
// not have the rows and columns that there are to be; else errors as OpenColumnFile's.
absl::StatusOr<std::optional<ColumnFile>> OpenBaseColumns(const std::string& directory,
                                                          const Manifest& manifest,
                                                          const IndexSpec& spec, VerifyLevel level,
                                                          int threads, FileSystem* files);

}  // namespace cairn
