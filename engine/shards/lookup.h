#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/index_iterator.h"
#include "cairn/lookup.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// Returns InvalidArgument if options of a SecondaryIndex have a snapshot or a transaction: only
// IndexedDB has the states of these. `Options` is LookupOptions or IteratorOptions.
template <typename Options>
absl::Status CheckHasOwnState(const Options& options) {
  if (options.snapshot == nullptr && options.transaction == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a SecondaryIndex answers at its own state; pass the snapshot or the transaction to a method "
      "of IndexedDB");
}

// Lookup in one version of an index. The version does not change during the call, and row ids are
// used only within it. *found is empty after an error. Errors: those of the index; InvalidArgument,
// naming the index and the key: its codec rejects the key. Throws std::bad_alloc.
// LookupOptions::snapshot and `transaction` are ignored here and in the functions below.
absl::Status LookUpKeys(const SecondaryIndex& version, const KeyQuery& query,
                        const LookupOptions& options, FoundKeys* found);
// Also returns the rows, without those that have no such key in `rows`: the index's database, at
// the version's state or at another one.
absl::Status LookUpRows(const SecondaryIndex& version, const SnapshotSource& rows,
                        const KeyQuery& query, const LookupOptions& options, FoundRows* found);
// The same if the database is at the version's state, so that every row that exists has the key
// that the index has. `read` gets the primary keys of rows, in any order. It appends the values of
// these rows to `values`, and sets value_of[i] to the index of the value of row i there, or to
// SIZE_MAX if there is no such row.
using ReadValuesOf = absl::FunctionRef<absl::Status(
    const StringList& primary_keys, StringList* values, std::vector<size_t>* value_of)>;
absl::Status LookUpRows(const SecondaryIndex& version, ReadValuesOf read, const KeyQuery& query,
                        const LookupOptions& options, FoundRows* found);
// SecondaryIndex::NewIterator for such a version, which the iterator keeps. Throws nothing.
IndexIterator IterateVersion(std::shared_ptr<const SecondaryIndex> version,
                             const IteratorOptions& options);

}  // namespace cairn
