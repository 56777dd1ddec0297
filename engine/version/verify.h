#pragma once

#include "absl/status/status.h"
#include "engine/version/base.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Whether every ordered index of a base gives the right positions for every distinct key of its
// run: DataLoss with the first that does not. Reads every key; what the files hold was checked when
// they were opened.
absl::Status VerifyStructure(const Base& base, const StopCondition& stop);

}  // namespace cairn
