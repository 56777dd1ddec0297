#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/options.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// Builds all targets in one pass over the source, and publishes them: SecondaryIndex::BuildAll.
//
// Data flow: the source is divided into many more ranges of primary keys than there are threads.
// One thread scans each range. It passes each row's primary key to the row table, and each row's
// secondary keys to the RunBuilder of each target, with the row's rank in the range. After all
// ranges the first row id of each range is known. Then each target's entries are sorted and
// written.
absl::StatusOr<std::vector<BuildReport>> BuildIndexes(const SnapshotSource& source,
                                                      absl::Span<const BuildTarget> targets,
                                                      const BuildOptions& options);

}  // namespace cairn
