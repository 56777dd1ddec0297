#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/secondary_index.h"
#include "tools/report/report.h"

namespace cairn::tools {

// Makes what a sample says of the first part exact, by counting ranges: a histogram of numbers that
// are the whole key, with the least and the most of them, and how many keys begin with each prefix.
// Nothing is done where the facts are exact.
absl::Status CountExactly(const SecondaryIndex& index, uint64_t entries, KeyFacts* facts);

}  // namespace cairn::tools
