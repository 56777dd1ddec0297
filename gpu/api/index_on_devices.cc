#include "gpu/api/index_on_devices.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cairn/device.h"
#include "cairn/device/group.h"
#include "cairn/query.h"
#include "gpu/host/gpu_index.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// An index on one device.
class IndexOnDevice final : public GpuIndex {
 public:
  IndexOnDevice(SortedRun run, std::unique_ptr<const DeviceIndex> index, int device)
      : GpuIndex(std::move(run), std::move(index)), device_(device) {}

  std::string description() const override {
    return absl::StrCat(GpuIndex::description(), " on device ", device_);
  }

 private:
  const int device_;
};

// An index on several devices, each with all entries. Returns Unavailable if all devices are lost;
// the caller can then use the CPU.
class IndexOnDevices final : public OrderedIndex {
 public:
  IndexOnDevices(SortedRun run, absl::Span<const int> devices, std::unique_ptr<DeviceGroup> group)
      : OrderedIndex(std::move(run)),
        devices_(absl::StrJoin(devices, ", ")),
        group_(std::move(group)) {}

  std::string description() const override {
    const size_t lost = group_->lost_members();
    return absl::StrCat(group_->member(0).description(), " on devices ", devices_,
                        lost == 0 ? "" : absl::StrCat(" (", lost, " lost)"));
  }
  uint64_t memory_bytes() const override { return group_->memory_bytes(); }
  absl::Status Execute(const Batch& batch) const override { return group_->Execute(batch); }

 private:
  const std::string devices_;
  const std::unique_ptr<const DeviceGroup> group_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOnDevices(std::string_view factory, SortedRun run,
                                                            absl::Span<const int> devices) {
  if (devices.size() == 1) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceIndex> index,
                     MakeDeviceIndex(factory, run, devices.front()));
    return std::make_unique<IndexOnDevice>(std::move(run), std::move(index), devices.front());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceGroup> group,
                   DeviceGroup::Replicate(factory, run, devices));
  return std::make_unique<IndexOnDevices>(std::move(run), devices, std::move(group));
}

}  // namespace cairn::gpu
