#pragma once

#include "absl/status/status.h"
#include "engine/version/base.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Checks that every ordered index of a base has the right positions for every distinct key of its
// run. DataLoss with the first difference. Reads every key; the files' contents were verified when
// they were opened.
absl::Status VerifyStructure(const Base& base, const StopCondition& stop);

}  // namespace cairn
