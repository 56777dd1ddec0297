#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/sorted_run.h"

namespace cairn::gpu {

// MakeGpuIndex on each of a list of one or more devices; the factory string names no device.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOnDevices(std::string_view factory, SortedRun run,
                                                            absl::Span<const int> devices);

}  // namespace cairn::gpu
