#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/secondary_index.h"
#include "tools/report/report.h"

namespace cairn::tools {

// Replaces a sample's facts about the first part by exact ones, by counting ranges: the histogram
// of numbers that are the whole key, its least and most, and the number of keys with each prefix.
// Does nothing if the facts are exact.
absl::Status CountExactly(const SecondaryIndex& index, uint64_t entries, KeyFacts* facts);

}  // namespace cairn::tools
