#pragma once

#include "absl/status/status.h"
#include "cairn/options.h"

namespace cairn {

// Whether ordered indexes on a GPU are asked for.
bool AsksForGpu(const OpenOptions& options);

// InvalidArgument where OpenOptions::devices are none that an index is opened on. Whether such
// devices are there is not asked.
absl::Status CheckDevices(const OpenOptions& options);

// What one of `shards` shards is opened with: its device, and a share of what those that are on it,
// and those of all the host, may take together.
OpenOptions OptionsOfShard(const OpenOptions& options, size_t shard, size_t shards);

}  // namespace cairn
