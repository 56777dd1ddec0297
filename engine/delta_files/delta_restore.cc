#include "engine/delta_files/delta_restore.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/delta_files/delta_files.h"
#include "engine/delta_files/update_merge.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Rows that are applied at a time: enough to find theirs among the base's in passing, few enough
// that a long file is not held in memory twice.
constexpr size_t kUpdatesAtATime = size_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<DeltaWriter>> RestoreDelta(const std::string& directory,
                                                          const Manifest& manifest,
                                                          SortedRun base_run, RowTable base_rows,
                                                          VerifyLevel verify, int threads,
                                                          FileSystem* files) try {
  const KeyKind kind = base_run.kind();
  ASSIGN_OR_RETURN(std::unique_ptr<DeltaWriter> writer,
                   DeltaWriter::Create(std::move(base_run), std::move(base_rows), threads));
  ASSIGN_OR_RETURN(const std::vector<DeltaFile> deltas,
                   OpenDeltas(directory, DeltaFilesOf(manifest), kind, manifest.sequence, verify,
                              threads, files));
  if (deltas.empty()) return writer;
  // Each row once, however many files have it.
  UpdateMerge merge(kind);
  for (const DeltaFile& file : deltas) merge.Add(file);
  RowUpdates updates(kind);
  while (merge.Next(kUpdatesAtATime, &updates)) {
    RETURN_IF_ERROR(writer->Apply(updates).status());
  }
  return writer;
} catch (...) {
  return StatusOfException("reading an index's delta files");
}

}  // namespace cairn
