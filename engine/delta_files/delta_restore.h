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

// The writer over a base that has applied the delta files of `manifest`, in the manifest's order:
// what it was when the last of them was written, but for the ids of rows that the base lacks.
// `directory` is where the files lie; `threads` as for DeltaWriter::Create, and for checksums.
//
// DataLoss where a file is damaged, is not the one that the manifest means, or does not belong
// where it is: of keys of another kind, without the tuples that an index with `base_columns` has or
// with others, not behind the file before it, or behind manifest.sequence.
// NotFound where a file is missing, as after the next version was published
// (OpenCurrentVersion). ResourceExhausted where memory does not suffice.
absl::StatusOr<std::unique_ptr<DeltaWriter>> RestoreDelta(const std::string& directory,
                                                          const Manifest& manifest,
                                                          SortedRun base_run, RowTable base_rows,
                                                          VerifyLevel verify, int threads = 1,
                                                          FileSystem* files = FileSystem::Posix(),
                                                          ColumnTable base_columns = {});

}  // namespace cairn
