#pragma once

#include "absl/status/status.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/version/index_version.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Reads the rows of `matches`, the matches of `ranges` in that version, from `source`, as
// SecondaryIndex::Fetch does. A row that matches one range with several keys is returned once for
// it, at its first match. Ends with the error of `stop` if it has one.
absl::Status FetchRows(const IndexVersion& version, const SnapshotSource& source,
                       const RangeBatch& ranges, const FindResult& matches,
                       const StopCondition& stop, FetchResult* rows);

}  // namespace cairn
