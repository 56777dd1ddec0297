#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"
#include "gpu/run/entry_array.h"

namespace cairn::gpu {

struct SortedArrayOptions {
  // With columns, the last reads of a search share more lines, ranges read only row ids, and the
  // run need not be copied.
  EntryLayout layout = EntryLayout::kSoA;
};

// Binary search on the run itself: AO+BS of Henneberg and Schuhknecht, "Is Binary Search Really All
// You Need?" (2025), section 3.1. Needs no memory in addition to the run, and no build. Each lookup
// reads one entry per bit of the size. Enqueued on `stream`.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildSortedArray(DeviceRun<Key> run,
                                                              const SortedArrayOptions& options,
                                                              cudaStream_t stream);

}  // namespace cairn::gpu
