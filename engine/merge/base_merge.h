#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/options.h"
#include "engine/build/base_files.h"
#include "engine/delta/delta.h"
#include "index/files/index_directory.h"
#include "index/files/manifest.h"

namespace cairn {

// Returns the manifest that follows `current` after a merge: `base` replaces the old base and the
// delta files `merged`, whose changes are all in the merged delta. Files stored later remain, even
// if they contain some of these changes: updates that a base already has change nothing. Counts
// that only a build computes are left out.
//
// The base's row table has all rows with entries. It also has rows that had none when a build added
// them and have not changed since. It does not have rows that lost their entries by an update.
Manifest AfterMerge(const Manifest& current, const WrittenBase& base,
                    absl::Span<const ManifestFile> merged);

// Merges a delta and its base into a new base, in new files of `directory`. The files equal those
// of a build of the same rows, except for the parts of the row table. The merge sorts nothing and
// copies nothing in memory: it streams both in one pass and translates the row ids of entries on
// the way. It takes 4 bytes per row, 16 to 24 bytes per added entry, and a few megabytes.
//
// The directory's holder publishes the files, and may publish others during the merge. The merge
// and readers do not block each other; they share only the bandwidth of memory and disk.
//
// Errors: Cancelled. DataLoss: the base is damaged. ResourceExhausted: the disk is full or memory
// runs out. Internal: writing fails. On error no files remain.
//
// A DeltaWriter of the new base takes over the changes that were made during the merge, by primary
// key: DeltaChanges::Since(*delta, latest version).
//
// `prebuild_search_structure`: also write stored leaves (WriteLeaves) to the new base. Writing them
// is not rate-limited.
absl::StatusOr<WrittenBase> MergeBase(const Delta& delta, IndexDirectory* directory,
                                      const CompactOptions& options,
                                      bool prebuild_search_structure = false);

}  // namespace cairn
