#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/index_iterator.h"
#include "cairn/lookup.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// Lookup over one version of an index, which does not change during the call: row ids begin and end
// here. Errors: those of the index; InvalidArgument, naming the index and the key, for a key that
// its codec refuses. Throws std::bad_alloc.
absl::StatusOr<FoundKeys> LookUpKeys(const SecondaryIndex& version, const KeyQuery& query,
                                     const LookupOptions& options);
// `rows` is the index's database at the version's state.
absl::StatusOr<FoundRows> LookUpRows(const SecondaryIndex& version, const SnapshotSource& rows,
                                     const KeyQuery& query, const LookupOptions& options);
// SecondaryIndex::NewIterator of such a version, which it keeps. No exception leaves.
IndexIterator IterateVersion(std::shared_ptr<const SecondaryIndex> version,
                             const IteratorOptions& options);

}  // namespace cairn
