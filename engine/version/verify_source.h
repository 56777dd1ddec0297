#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/snapshot_source.h"
#include "engine/version/index_version.h"

namespace cairn {

// Whether a version agrees with a database, both ways (as PostgreSQL's amcheck does): each key of
// each row is in the index, and each entry of the index is accounted for by such a row. Where
// nothing has been caught up since the base was built, its row table has all rows, and rows without
// entries are compared too. Differences are appended to `differences`, one line each; the scan ends
// at the `most`th. Uses `threads` threads.
absl::Status VerifyAgainstSource(const IndexVersion& version, const SnapshotSource& source,
                                 int threads, size_t most, std::vector<std::string>* differences);

}  // namespace cairn
