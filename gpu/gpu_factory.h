#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cairn/sorted_run.h"
#include "index/factory_string.h"

namespace cairn::gpu {

// Builds the structure of a factory string whose device is "gpu" over `run`, on the device that its
// option device= names, 0 unless told. Errors as MakeOrderedIndex's.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeGpuIndex(FactoryString factory, SortedRun run);

}  // namespace cairn::gpu
