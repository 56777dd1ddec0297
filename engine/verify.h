#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/snapshot_source.h"
#include "engine/base.h"

namespace cairn {

// Whether a base agrees with itself: entries strictly ascending, row ids within the row table,
// primary keys strictly ascending, counts as in the manifest, and every ordered index gives the
// right positions for every distinct key of the run. DataLoss with the first fault. Reads
// everything; checksums are Open's.
absl::Status VerifyStructure(const Base& base);

// Whether a base agrees with a database, both ways (as PostgreSQL's amcheck does): each row is in
// the row table and each of its keys in the run, and each row and entry of the index is accounted
// for by such a row. Differences are appended to `differences`, one line each; the scan ends at the
// `most`th. Uses `threads` threads.
absl::Status VerifyAgainstSource(const Base& base, const SnapshotSource& source, int threads,
                                 size_t most, std::vector<std::string>* differences);

}  // namespace cairn
