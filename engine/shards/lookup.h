#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/index_iterator.h"
#include "cairn/lookup.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// Lookup in one version of an index. The version does not change during the call, and row ids are
// used only within it. Errors: those of the index; InvalidArgument, naming the index and the key:
// its codec rejects the key. Throws std::bad_alloc.
absl::StatusOr<FoundKeys> LookUpKeys(const SecondaryIndex& version, const KeyQuery& query,
                                     const LookupOptions& options);
// `rows` must be the index's database at the version's state.
absl::StatusOr<FoundRows> LookUpRows(const SecondaryIndex& version, const SnapshotSource& rows,
                                     const KeyQuery& query, const LookupOptions& options);
// SecondaryIndex::NewIterator for such a version, which the iterator keeps. Throws nothing.
IndexIterator IterateVersion(std::shared_ptr<const SecondaryIndex> version,
                             const IteratorOptions& options);

}  // namespace cairn
