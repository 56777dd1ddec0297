#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/options.h"
#include "engine/build/base_files.h"
#include "engine/delta/delta.h"
#include "index/files/index_directory.h"
#include "index/files/manifest.h"

namespace cairn {

// The manifest after `current`, in which a base that a merge wrote is in the place of the base
// before and of the delta files `merged`: those that the merged delta has all of. Files that were
// stored since stay, also if some of these are in them: updates that a base has already change
// nothing. What only a build counts is left out. The base's row table has the rows that have
// entries, and those that had none when a build added them and have not changed since; a row that
// an update left without entries is gone.
Manifest AfterMerge(const Manifest& current, const WrittenBase& base,
                    absl::Span<const ManifestFile> merged);

// Writes the base that a delta and its base come to into new files of `directory`: the files that a
// build of the same rows would write, but for the parts of the row table. Nothing is sorted and
// nothing copied in memory: both bases are streamed, in one pass each, and the pass over the
// entries translates their row ids. Takes 4 bytes a row, 16 to 24 bytes for each entry that came,
// and some megabytes.
//
// The directory's holder publishes the files, and may publish others meanwhile. Readers are not in
// the way, nor in their way this, but for the memory's and the disk's bandwidth.
//
// Cancelled; DataLoss where the base is damaged; ResourceExhausted where the disk is full or memory
// does not suffice; Internal where writing fails. After an error there are no files.
//
// What came while the merge ran goes over to a DeltaWriter of the new base by primary keys:
// DeltaChanges::Since(*delta, latest version).
//
// `prebuild_search_structure`: the new base has stored leaves (WriteLeaves); writing them is not
// paced.
absl::StatusOr<WrittenBase> MergeBase(const Delta& delta, IndexDirectory* directory,
                                      const CompactOptions& options,
                                      bool prebuild_search_structure = false);

}  // namespace cairn
