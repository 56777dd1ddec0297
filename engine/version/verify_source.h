#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/snapshot_source.h"
#include "engine/version/index_version.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Checks whether a version agrees with a database, in both directions, as PostgreSQL's amcheck
// does: each key of each row must be in the index, and each entry must be of such a row. If there
// are no changes since the base was built, its row table has all rows, and rows without entries are
// also compared. Appends differences to `differences`, one line each; the scan ends at number
// `most`. Uses `threads` threads.
absl::Status VerifyAgainstSource(const IndexVersion& version, const SnapshotSource& source,
                                 int threads, size_t max_differences, const StopCondition& stop,
                                 std::vector<std::string>* differences);

// Chooses the version for each of several entries: sets version_of[i] for key i, of the row with
// primary_keys[row_of_key[i]].
using PlaceEntries =
    absl::FunctionRef<void(KeyBatch keys, absl::Span<const uint32_t> row_of_key,
                           const StringList& primary_keys, absl::Span<uint32_t> version_of)>;

// As above, for versions of one spec that together have a source's entries, each in one version;
// reads the source once. Several threads call `place`.
absl::Status VerifyAgainstSource(absl::Span<const IndexVersion* const> versions, PlaceEntries place,
                                 const SnapshotSource& source, int threads, size_t max_differences,
                                 const StopCondition& stop, std::vector<std::string>* differences);

}  // namespace cairn
