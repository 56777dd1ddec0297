// Replaces device_group.cc in a build without CUDA.

#include <cstdlib>

#include "absl/strings/str_format.h"
#include "cairn/device/group.h"

namespace cairn {
namespace {

constexpr char kNoGroups[] = "device group: Cairn was built without CUDA";

absl::Status NoGroup(std::string_view factory) {
  return absl::UnavailableError(absl::StrFormat("ordered index '%s': %s", factory, kNoGroups));
}

}  // namespace

// No group is ever created.
class gpu::GroupState {};
class DeviceGroup::Host {};
DeviceGroup::~DeviceGroup() = default;
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::Replicate(std::string_view factory,
                                                                    SortedRun,
                                                                    absl::Span<const int>,
                                                                    const DeviceGroupOptions&) {
  return NoGroup(factory);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::Shard(std::string_view factory, SortedRun,
                                                                absl::Span<const int>,
                                                                const DeviceGroupOptions&) {
  return NoGroup(factory);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfShards(std::string_view factory,
                                                                   std::vector<SortedRun>,
                                                                   absl::Span<const int>,
                                                                   const DeviceGroupOptions&) {
  return NoGroup(factory);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfReplicas(
    std::vector<std::unique_ptr<const DeviceIndex>>, const DeviceGroupOptions&) {
  return absl::UnavailableError(kNoGroups);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfShards(
    std::vector<std::unique_ptr<const DeviceIndex>>, absl::Span<const uint64_t>,
    absl::Span<const uint64_t>, const DeviceGroupOptions&) {
  return absl::UnavailableError(kNoGroups);
}
PhysicalType DeviceGroup::kind() const {
  return PhysicalType::kU32;
}
uint64_t DeviceGroup::size() const {
  return 0;
}
bool DeviceGroup::replicated() const {
  return false;
}
bool DeviceGroup::has_global_rows() const {
  return false;
}
size_t DeviceGroup::members() const {
  return 0;
}
const DeviceIndex& DeviceGroup::member(size_t) const {
  std::abort();  // unreachable, because no group exists
}
size_t DeviceGroup::lost_members() const {
  return 0;
}
std::string DeviceGroup::description() const {
  return kNoGroups;
}
uint64_t DeviceGroup::memory_bytes() const {
  return 0;
}
absl::Status DeviceGroup::Execute(const WideDeviceBatch&, DeviceStream) const {
  return absl::UnavailableError(kNoGroups);
}
absl::StatusOr<const DeviceIndex*> DeviceGroup::On(int) const {
  return absl::UnavailableError(kNoGroups);
}
absl::Status DeviceGroup::Execute(const Batch&) const {
  return absl::UnavailableError(kNoGroups);
}

}  // namespace cairn
