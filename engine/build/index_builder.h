#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/options.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// Builds all targets in one pass over the source, and publishes them: SecondaryIndex::BuildAll.
//
// The way of the data: the source is cut into many more ranges of primary keys than there are
// threads. Each range is scanned by one thread, which hands every row's primary key to the row
// table and every row's secondary keys to each target's RunBuilder, under the row's rank in the
// range. When all ranges are done, the ranges' first row ids are known, and each target's entries
// are sorted and written.
absl::StatusOr<std::vector<BuildReport>> BuildIndexes(const SnapshotSource& source,
                                                      absl::Span<const BuildTarget> targets,
                                                      const BuildOptions& options);

}  // namespace cairn
