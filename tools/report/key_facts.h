#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "tools/report/report.h"

namespace cairn::tools {

// A sample of an index's keys.
struct KeysRead {
  KeyFacts facts;
  EncodedKeys queries;  // physical keys that are there, drawn from all over the index, in order
};

// Reads all keys of an index with at most options.scan_most entries, and a sample of a larger one,
// or of one that takes long.
absl::StatusOr<KeysRead> ReadKeyFacts(const SecondaryIndex& index, uint64_t entries,
                                      const ReportOptions& options);

}  // namespace cairn::tools
