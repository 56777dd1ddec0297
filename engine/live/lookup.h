#pragma once

#include "absl/status/statusor.h"
#include "cairn/lookup.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// IndexedDB::Lookup and LookupRows over one version of an index, which stays what it is during the
// call: row ids begin and end here. Errors as the index's; InvalidArgument, naming the index and
// the key, for a key that its codec refuses.
absl::StatusOr<FoundKeys> LookUpKeys(const SecondaryIndex& version, const KeyQuery& query,
                                     const LookupOptions& options);
// `rows` is the index's database at the version's state.
absl::StatusOr<FoundRows> LookUpRows(const SecondaryIndex& version, const SnapshotSource& rows,
                                     const KeyQuery& query, const LookupOptions& options);

}  // namespace cairn
