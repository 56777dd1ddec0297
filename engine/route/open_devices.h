#pragma once

#include "absl/status/status.h"
#include "cairn/options.h"

namespace cairn {

// Returns whether the options request ordered indexes on a GPU.
bool AsksForGpu(const OpenOptions& options);

// InvalidArgument: an index cannot be opened on OpenOptions::devices. Does not check whether these
// devices exist.
absl::Status CheckDevices(const OpenOptions& options);

// Returns the options for opening one of `shards` shards: its device, and its share of the memory
// budgets of the device and the host.
OpenOptions OptionsOfShard(const OpenOptions& options, size_t shard, size_t shards);

}  // namespace cairn
