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

// Maps the column file of the index in `directory`, which the manifest lists; nothing if its spec
// includes no columns. Errors: DataLoss: the manifest lists no such file, it is another file, or
// its rows and columns do not match; those of OpenColumnFile.
absl::StatusOr<std::optional<ColumnFile>> OpenBaseColumns(const std::string& directory,
                                                          const Manifest& manifest,
                                                          const IndexSpec& spec, VerifyLevel level,
                                                          int threads, FileSystem* files);

}  // namespace cairn
