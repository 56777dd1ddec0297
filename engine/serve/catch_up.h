#pragma once

#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "cairn/snapshot_source.h"
#include "engine/log/update_log.h"
#include "engine/version/index_writer.h"

namespace cairn {

// SecondaryIndex::CatchUp for the index whose versions `writer` creates. `live`: see
// UpdateLog::Open.
absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source, const CatchUpOptions& options,
                                      IndexWriter* writer, const LiveLog& live = {});

}  // namespace cairn
