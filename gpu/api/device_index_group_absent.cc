// Replaces device_index_group.cc in a build without CUDA.

#include "cairn/device/index_group.h"

namespace cairn {
namespace {

absl::Status NoDeviceForGroup() {
  return absl::UnavailableError("DeviceIndexGroup: no CUDA device: Cairn was built without CUDA");
}

}  // namespace

struct DeviceIndexGroup::Impl {};

absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> DeviceIndexGroup::Create(uint64_t,
                                                                           absl::Span<const Column>,
                                                                           DeviceStream) {
  return NoDeviceForGroup();
}
absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> DeviceIndexGroup::Create(
    uint64_t, absl::Span<const SortedRun>, int) {
  return NoDeviceForGroup();
}

// No group exists to call these on, but programs that call them must link.
DeviceIndexGroup::DeviceIndexGroup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceIndexGroup::~DeviceIndexGroup() = default;
uint64_t DeviceIndexGroup::rows() const {
  return 0;
}
size_t DeviceIndexGroup::columns() const {
  return 0;
}
uint64_t DeviceIndexGroup::entries(size_t) const {
  return 0;
}
int DeviceIndexGroup::device() const {
  return 0;
}
uint64_t DeviceIndexGroup::memory_bytes() const {
  return 0;
}
absl::StatusOr<DeviceWherePlan> DeviceIndexGroup::Explain(const DevicePredicate&, bool,
                                                          DeviceWhereStrategy) const {
  return NoDeviceForGroup();
}
absl::Status DeviceIndexGroup::Count(const DevicePredicate&, uint64_t*, DeviceStream,
                                     DeviceWhereStrategy) const {
  return NoDeviceForGroup();
}
absl::Status DeviceIndexGroup::Find(const DevicePredicate&, RowId*, uint64_t, uint64_t*,
                                    DeviceStream, DeviceWhereStrategy) const {
  return NoDeviceForGroup();
}

}  // namespace cairn
