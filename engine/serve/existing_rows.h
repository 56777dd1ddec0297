#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/query.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// Reads the row from `source`. Returns whether it exists and has keys[i] as its key, or one of its
// keys, by `spec`.
absl::StatusOr<bool> ExistingRowHasKey(const SnapshotSource& source, const IndexSpec& spec,
                                       std::string_view primary_key, const EncodedKeys& keys,
                                       size_t i);

}  // namespace cairn
