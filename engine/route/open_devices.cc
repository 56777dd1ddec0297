#include "engine/route/open_devices.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "cairn/device/group.h"
#include "index/machine/available_memory.h"
#include "index/query/factory_string.h"

namespace cairn {
namespace {

// Returns a device's memory, or 0 if there is no such device.
uint64_t MemoryOf(int ordinal) {
  const absl::StatusOr<std::vector<Device>> devices = ListDevices();
  for (size_t i = 0; devices.ok() && i < devices->size(); ++i) {
    if ((*devices)[i].ordinal == ordinal) return (*devices)[i].memory_bytes;
  }
  return 0;
}

// Returns a share of a budget. 0, which means no budget, stays 0.
uint64_t Share(uint64_t budget, uint64_t parts) {
  return budget == 0 ? 0 : budget / parts + 1;
}

}  // namespace

bool AsksForGpu(const OpenOptions& options) {
  if (options.ordered_indexes.empty()) return options.device != SearchDevice::kCpu;
  return std::any_of(options.ordered_indexes.begin(), options.ordered_indexes.end(),
                     [](const std::string& name) { return absl::StartsWith(name, "gpu:"); });
}

absl::Status CheckDevices(const OpenOptions& options) {
  const std::vector<int>& devices = options.devices;
  if (devices.empty()) return absl::OkStatus();
  if (devices.size() > kMaxGroupMembers) {
    return absl::InvalidArgumentError(absl::StrFormat("devices: expected at most %d, found %d",
                                                      kMaxGroupMembers, devices.size()));
  }
  for (const int device : devices) {
    if (device >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("devices: expected CUDA ordinals of 0 or more, found %d", device));
  }
  for (const std::string& name : options.ordered_indexes) {
    absl::StatusOr<FactoryString> factory = FactoryString::Parse(name);
    if (factory.ok() && factory->Take("device").has_value()) {
      return factory->Bad("expected no device= together with a list of devices");
    }
  }
  if (AsksForGpu(options)) return absl::OkStatus();
  return absl::InvalidArgumentError("devices: GPUs are listed, but no ordered index is for a GPU");
}

OpenOptions OptionsOfShard(const OpenOptions& options, size_t shard, size_t shards) {
  OpenOptions of_one = options;
  const uint64_t on_host =
      options.host_memory_budget != 0 ? options.host_memory_budget : AvailableMemoryBytes() / 2;
  of_one.host_memory_budget = Share(on_host, shards);
  if (!AsksForGpu(options)) return of_one;

  const std::vector<int> devices = options.devices.empty() ? std::vector<int>{0} : options.devices;
  const int device = devices[shard % devices.size()];
  uint64_t beside = 0;  // shards on that device, including this one
  for (size_t place = 0; place < devices.size() && place < shards; ++place) {
    if (devices[place] == device) beside += (shards - place - 1) / devices.size() + 1;
  }
  const uint64_t on_device =
      options.device_memory_budget != 0 ? options.device_memory_budget : MemoryOf(device) / 2;
  of_one.device_memory_budget = Share(on_device, beside);
  if (!options.devices.empty()) of_one.devices = {device};
  return of_one;
}

}  // namespace cairn
