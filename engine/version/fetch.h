#pragma once

#include "absl/status/status.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/version/index_version.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Reads the rows of `matches`, which answer `ranges` at that version, from `source`:
// SecondaryIndex::Fetch. A row that matches one range under several keys is returned once for it,
// where it came first. Ends with the error of `stop`, if that has one.
absl::Status FetchRows(const IndexVersion& version, const SnapshotSource& source,
                       const RangeBatch& ranges, const FindResult& matches,
                       const StopCondition& stop, FetchResult* rows);

}  // namespace cairn
