#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/catch_up.h"
#include "engine/delta/delta.h"
#include "index/files/index_directory.h"
#include "index/files/manifest.h"

namespace cairn {

// What a merge wrote.
struct MergedBase {
  ManifestFile run;
  ManifestFile row_table;
  std::optional<ManifestFile> columns;  // where the index includes any
  // Rows of the table: those that have entries, and those that had none when they came to the base
  // by a build, and have not changed since. A row that an update left without entries is gone.
  uint64_t rows = 0;
  uint64_t entries = 0;
  uint64_t distinct_keys = 0;

  // The manifest of the version after `current`, in which this stands in the place of the base and
  // of the delta files `merged`: those that the merged delta has all of. What was stored since
  // stays as it is, also where it was made one file with some of these: rows that come to the base
  // again are what they are there, or later. What only a build counts is left out.
  Manifest Follow(const Manifest& current, absl::Span<const ManifestFile> merged) const;
};

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
// `leaves` says whether the new base has stored leaves: WriteLeaves', which takes the memory that
// it takes, and is not paced.
enum class BaseLeaves : uint8_t { kNone, kStored };
absl::StatusOr<MergedBase> MergeBase(const Delta& delta, IndexDirectory* directory,
                                     const MergeOptions& options,
                                     BaseLeaves leaves = BaseLeaves::kNone);

}  // namespace cairn
