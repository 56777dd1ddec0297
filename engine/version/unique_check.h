#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/delta/row_updates.h"
#include "engine/version/index_version.h"

namespace cairn {

// Whether a row of the database has the i-th of these keys. An index may have rows that the
// database no longer has, or has with other keys, since compaction filters leave no trace in the
// log.
using RowHasKey = std::function<absl::StatusOr<bool>(std::string_view primary_key,
                                                     const EncodedKeys& keys, size_t i)>;

// AlreadyExists, naming a key and two rows, if `version` would have a key twice after `updates`
// (IndexSpec::unique), and `row_has_key`, unless it is null, returns true for the row that had the
// key before. Other errors: those of the search and of `row_has_key`.
absl::Status CheckUnique(const IndexVersion& version, const Delta& delta, const RowUpdates& updates,
                         const RowHasKey& row_has_key);

// As CheckUnique, for updates that have been applied: `delta` is a later one over the version's
// base.
absl::Status CheckUniqueSince(const IndexVersion& version,
                              const std::shared_ptr<const Delta>& delta,
                              const RowHasKey& row_has_key);

}  // namespace cairn
