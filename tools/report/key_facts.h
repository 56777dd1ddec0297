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
  EncodedKeys queries;  // existing physical keys, drawn from the whole index, in order
};

// Reads all keys of an index with at most options.scan_most entries. For a larger index, or if that
// takes long, reads a sample.
absl::StatusOr<KeysRead> ReadKeyFacts(const SecondaryIndex& index, uint64_t entries,
                                      const ReportOptions& options);

}  // namespace cairn::tools
