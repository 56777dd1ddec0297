#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/query.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// Whether `source` has this row, and the row has keys[i] as its key by `spec`, or as one of its
// keys. Reads the row. Errors: those of SnapshotSource::Get and ChangeExtractor::Extract.
absl::StatusOr<bool> ExistingRowHasKey(const SnapshotSource& source, const IndexSpec& spec,
                                       std::string_view primary_key, const EncodedKeys& keys,
                                       size_t i);

}  // namespace cairn
