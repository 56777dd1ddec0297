#pragma once

#include <atomic>

#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "tools/report/report.h"

namespace cairn::tools {

// Times batches of several sizes for about `seconds`: on every route, the first rows of `keys`,
// which must exist; and other queries on the routes that the router chooses. `keys` must ascend;
// batches are drawn from them at random. Errors: Cancelled if *cancelled is set.
absl::StatusOr<SpeedFacts> MeasureSpeed(const SecondaryIndex& index, EncodedKeys* keys,
                                        double seconds, const std::atomic<bool>* cancelled);

}  // namespace cairn::tools
