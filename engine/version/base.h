#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/open_options.h"
#include "cairn/ordered_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/sorted_run.h"
#include "engine/route/index_router.h"
#include "engine/route/resident_indexes.h"
#include "engine/rows/row_table_file.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "index/files/run_file.h"

namespace cairn {

// The immutable bulk of an index: one version's mapped files and what searches them. Thread-safe.
struct Base {
  std::shared_ptr<FileSystem> files;  // where the directory is
  std::string directory;
  Manifest manifest;
  IndexSpec spec;
  KeyCodec codec;
  RunFile run_file;
  RowTableFile rows_file;
  ResidentIndexes resident;
  std::unique_ptr<const IndexRouter> router;  // over these

  const SortedRun& run() const { return run_file.run; }
  const RowTable& rows() const { return rows_file.table; }

  // Maps the live files of the index in `directory`, of the options' file system, and makes the
  // ordered indexes that they ask for, and trials of these.
  // NotFound where there is no index; DataLoss where its files do not belong together.
  static absl::StatusOr<std::shared_ptr<const Base>> Open(const std::string& directory,
                                                          const OpenOptions& options);
};

// FailedPrecondition unless rows of `source` can belong to the index: the same column family and,
// as far as both know theirs, the same database. (A checkpoint does not carry its database's
// identity.)
absl::Status CheckSameDatabase(const Base& base, const SnapshotSource& source);

}  // namespace cairn
