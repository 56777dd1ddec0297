#pragma once

#include "absl/status/status.h"
#include "engine/base.h"

namespace cairn {

// Whether a base agrees with itself: entries strictly ascending, row ids within the row table,
// primary keys strictly ascending, counts as in the manifest, and every ordered index gives the
// right positions for every distinct key of the run. DataLoss with the first fault. Reads
// everything; checksums are Open's.
absl::Status VerifyStructure(const Base& base);

}  // namespace cairn
