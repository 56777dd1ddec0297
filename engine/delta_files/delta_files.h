#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/delta/row_updates.h"
#include "engine/delta_files/delta_file.h"
#include "engine/rows/row_table.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "index/files/manifest.h"

// The delta files of an index. A manifest lists them in the order in which they are applied.
//
// There are few of them and each row is written a few times, as in an LSM-tree (O'Neil et al.,
// 1996): a new file is merged with preceding files that are not several times larger. AddDelta
// merges only small files, so that the cost of one new row does not depend on the number of others.
// MergeDeltas merges the large ones, concurrently with updates and stores.
namespace cairn {

// If there are this many delta files, MergeDeltas must run, even if other work has to wait for it.
inline constexpr size_t kMaxDeltaFiles = 64;

std::vector<ManifestFile> DeltaFilesOf(const Manifest& manifest);
// Removes the files from a manifest by name. Files that it does not list are ignored.
void RemoveFiles(absl::Span<const ManifestFile> files, Manifest* manifest);

// Maps some delta files of an index, in the order in which they are applied.
//
// Errors: DataLoss if a file is damaged, is not the one that the manifest lists, has keys of
// another kind than `kind`, overlaps the file before it, or ends after `end`. NotFound if a file is
// missing; this also happens if the next version has been published. `threads` is for checksums.
absl::StatusOr<std::vector<DeltaFile>> OpenDeltas(const std::string& directory,
                                                  absl::Span<const ManifestFile> deltas,
                                                  PhysicalType kind, SequenceNumber end,
                                                  VerifyLevel verify, int threads,
                                                  FileSystem* files);

// Writes a file of the updates that lead from the state `after` to `sequence`, with rows in
// primary-key order, and adds it to `next`. If the last delta files of `next` are small, the new
// file also contains their updates and replaces them. Writes the new updates and at most 32 KiB of
// old ones. Errors: those of WriteDelta and OpenDeltas. After an error the file does not exist.
absl::Status AddDelta(RowUpdates updates, SequenceNumber after, SequenceNumber sequence,
                      IndexDirectory* directory, Manifest* next);

// One delta file that replaces several.
struct MergedDeltas {
  std::vector<ManifestFile> merged;  // consecutive files
  ManifestFile file;

  // Replaces the merged files in `next` by the new one. Returns false if `next` lacks one of them;
  // `next` is then unspecified.
  bool Replace(Manifest* next) const;
};

// Merges a manifest's large delta files, and all others that AddDelta would not merge, and writes
// the new file. Returns nullopt if each is several times larger than those after it. `directory`
// may publish other versions concurrently. Takes memory for the contents of the files. Errors:
// those of AddDelta.
//
// `base_rows`: the rows of the manifest's base, or null. If the new file replaces all delta files
// up to its end, rows without keys that the base lacks are left out. So the size of delta files
// stays in proportion to the number of rows that exist or that the base has.
absl::StatusOr<std::optional<MergedDeltas>> MergeDeltas(const Manifest& manifest, PhysicalType kind,
                                                        IndexDirectory* directory,
                                                        const RowTable* base_rows = nullptr);

}  // namespace cairn
