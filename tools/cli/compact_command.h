#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/secondary_index.h"
#include "tools/print/output.h"

namespace cairn::tools {

struct CompactOptionsGiven {
  int threads = 0;  // 0: one per core
  uint64_t max_bytes_per_second = 0;
};

// Compacts an index, shows the progress, and prints the number of entries and rows.
absl::Status CompactIndex(const CompactOptionsGiven& given, SecondaryIndex* index, Output* output);

}  // namespace cairn::tools
