#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "engine/delta/delta_writer.h"
#include "engine/rows/row_table.h"
#include "index/columns/column_table.h"
#include "index/files/file_system.h"
#include "index/files/manifest.h"

namespace cairn {

// Creates a writer over a base and applies the delta files of `manifest` to it, in the manifest's
// order. Its state is that of the writer that wrote the last file, except for the ids of new rows.
// `directory` contains the files. `threads` is for DeltaWriter::Create and for checksums.
//
// Errors: DataLoss if a file is damaged, is not the one that the manifest lists, overlaps the file
// before it, or ends after manifest.sequence; the same if its keys are of another kind or its
// tuples do not fit `base_columns`. NotFound if a file is missing; this also happens if the next
// version has been published (OpenCurrentVersion). ResourceExhausted if memory runs out.
absl::StatusOr<std::unique_ptr<DeltaWriter>> RestoreDelta(const std::string& directory,
                                                          const Manifest& manifest,
                                                          SortedRun base_run, RowTable base_rows,
                                                          VerifyLevel verify, int threads = 1,
                                                          FileSystem* files = FileSystem::Posix(),
                                                          ColumnTable base_columns = {});

}  // namespace cairn
