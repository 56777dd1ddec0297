#pragma once

#include <memory>

#include "absl/status/status.h"
#include "engine/delta/row_updates.h"
#include "engine/version/index_version.h"

namespace cairn {

// AlreadyExists, naming a key and two rows, where `version` would have a key twice after `updates`:
// IndexSpec::unique. Requires that it has none twice before. Errors of the search.
absl::Status CheckUnique(const IndexVersion& version, const Delta& delta,
                         const RowUpdates& updates);

// The same where the updates have been applied: `delta` is a later one over the version's base.
absl::Status CheckUniqueSince(const IndexVersion& version,
                              const std::shared_ptr<const Delta>& delta);

}  // namespace cairn
