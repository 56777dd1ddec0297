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

// The delta files of an index, which a manifest names in the order in which they are to be applied.
//
// They are kept few and read soon, and each row is written a few times (LSM-trees; O'Neil et al.,
// 1996): what is stored is made one file with those before it that are not several times larger.
// So that one new row costs little beside any number of others, AddDelta does so with small files
// only, and leaves the large ones to MergeDeltas, which works beside updates and stores.
namespace cairn {

// With so many delta files MergeDeltas is due, whoever has to wait for it.
inline constexpr size_t kMaxDeltaFiles = 64;

std::vector<ManifestFile> DeltaFilesOf(const Manifest& manifest);
// Drops the files from a manifest, by name; those that it does not name are no matter.
void RemoveFiles(absl::Span<const ManifestFile> files, Manifest* manifest);

// Maps some delta files of an index, in the order in which they are applied.
//
// DataLoss where a file is damaged, is not the one that the manifest means, or does not belong
// where it is: of keys of another kind than `kind`, not behind the file before it, or behind `end`.
// NotFound where a file is missing, as after the next version was published. `threads`: for
// checksums.
absl::StatusOr<std::vector<DeltaFile>> OpenDeltas(const std::string& directory,
                                                  absl::Span<const ManifestFile> deltas,
                                                  PhysicalType kind, SequenceNumber end,
                                                  VerifyLevel verify, int threads,
                                                  FileSystem* files);

// Writes a file of the updates that came after the state `after` and led to `sequence`, rows in
// primary-key order, and of those that the last delta files of `next` have, as far as these are
// small; and has `next` name it in their place. Writes what is new, and at most 32 KiB of
// what there was. Errors as WriteDelta's and OpenDeltas'; after one there is no file.
absl::Status AddDelta(RowUpdates updates, SequenceNumber after, SequenceNumber sequence,
                      IndexDirectory* directory, Manifest* next);

// One delta file for several.
struct MergedDeltas {
  std::vector<ManifestFile> merged;  // that stand one behind the other
  ManifestFile file;

  // Has `next` name the file in their place; false where one of them is no longer there.
  bool Replace(Manifest* next) const;
};

// Writes the file that a manifest's large delta files, and those that no AddDelta would take, are
// to become; null if each is several times as large as those after it. `directory` may publish
// other versions concurrently. Takes memory for what is in the files. Errors: those of AddDelta.
//
// `base_rows`: the rows of the manifest's base, or null. If the file replaces all those before it,
// rows without keys that the base lacks are left out, so that delta files are in proportion to the
// rows that are there or are the base's.
absl::StatusOr<std::optional<MergedDeltas>> MergeDeltas(const Manifest& manifest, PhysicalType kind,
                                                        IndexDirectory* directory,
                                                        const RowTable* base_rows = nullptr);

}  // namespace cairn
