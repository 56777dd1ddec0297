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

// Whether a version agrees with a database, both ways (as PostgreSQL's amcheck does): each key of
// each row is in the index, and each entry of the index is accounted for by such a row. Where
// nothing has been caught up since the base was built, its row table has all rows, and rows without
// entries are compared too. Differences are appended to `differences`, one line each; the scan ends
// at the `most`th. Uses `threads` threads.
absl::Status VerifyAgainstSource(const IndexVersion& version, const SnapshotSource& source,
                                 int threads, size_t max_differences, const StopCondition& stop,
                                 std::vector<std::string>* differences);

// Says of entries which of several versions should have each: version_of[i] for key i, which is of
// the row with primary_keys[row_of_key[i]].
using PlaceEntries =
    absl::FunctionRef<void(KeyBatch keys, absl::Span<const uint32_t> row_of_key,
                           const StringList& primary_keys, absl::Span<uint32_t> version_of)>;

// The same for versions of one spec that have a source's entries together, each in one of them: in
// one pass over the source. `place` is called by several threads.
absl::Status VerifyAgainstSource(absl::Span<const IndexVersion* const> versions, PlaceEntries place,
                                 const SnapshotSource& source, int threads, size_t max_differences,
                                 const StopCondition& stop, std::vector<std::string>* differences);

}  // namespace cairn
