// What stands in for this folder in a build without CUDA.

#include <cstdlib>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "cairn/devices/device_group.h"
#include "gpu/api/gpu_factory.h"

namespace cairn {
namespace {

constexpr char kNoCuda[] = "no CUDA device: this build is without CUDA";

absl::Status Unavailable(std::string_view factory) {
  return absl::UnavailableError(absl::StrFormat("ordered index '%s': %s", factory, kNoCuda));
}

}  // namespace

absl::StatusOr<std::vector<Device>> Devices() {
  return absl::UnavailableError(kNoCuda);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             const SortedRun&, int) {
  return Unavailable(factory);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory, DeviceKeys,
                                                             const RowId*, DeviceStream) {
  return Unavailable(factory);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> EnqueueDeviceIndex(std::string_view factory,
                                                                DeviceKeys, const RowId*, bool,
                                                                DeviceStream) {
  return Unavailable(factory);
}

absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, DeviceKeys, const RowId*, DeviceStream) {
  return Unavailable(factory);
}

absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, const SortedRun&, int) {
  return Unavailable(factory);
}

// There is no index to call these on, but a program that does must link.
absl::Status DeviceIndex::Answer(const DeviceBatch&, DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::Status DeviceIndex::PlanScan(const DeviceRanges&, uint64_t, Order, Position*, uint64_t*,
                                   DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::Status DeviceIndex::CopyRows(const Position*, const uint64_t*, size_t, uint64_t, Order,
                                   RowId*, DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::Status DeviceIndex::Scan(const DeviceRanges&, uint64_t, Order, uint64_t*, RowId*, uint64_t,
                               DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::Status DeviceIndex::FindEqualRanges(DeviceKeys, Position*, Position*, DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::Status DeviceIndex::FindPrefixEnds(DeviceKeys, Position*, DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::StatusOr<size_t> UpdatableDeviceIndex::Insert(DeviceKeys, const RowId*, DeviceStream) {
  return absl::UnavailableError(kNoCuda);
}
absl::Status UpdatableDeviceIndex::BulkInsert(DeviceKeys, const RowId*, EqualKeys, DeviceStream) {
  return absl::UnavailableError(kNoCuda);
}
absl::Status TrimDeviceMemory(int, uint64_t) {
  return absl::UnavailableError(kNoCuda);
}
absl::Status SetDeviceMemoryResource(int, DeviceMemoryResource*) {
  return absl::UnavailableError(kNoCuda);
}
absl::Status Answer(const DeviceIndex&, const DeviceBatch&, const DeviceStrategyOptions&, uint32_t*,
                    DeviceStream) {
  return absl::UnavailableError(kNoCuda);
}

// Of groups none is ever made.
class gpu::GroupState {};
class DeviceGroup::Host {};
DeviceGroup::~DeviceGroup() = default;
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::Replicate(std::string_view factory,
                                                                    SortedRun,
                                                                    absl::Span<const int>,
                                                                    const DeviceGroupOptions&) {
  return Unavailable(factory);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::Shard(std::string_view factory, SortedRun,
                                                                absl::Span<const int>,
                                                                const DeviceGroupOptions&) {
  return Unavailable(factory);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfShards(std::string_view factory,
                                                                   std::vector<SortedRun>,
                                                                   absl::Span<const int>,
                                                                   const DeviceGroupOptions&) {
  return Unavailable(factory);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfReplicas(
    std::vector<std::unique_ptr<const DeviceIndex>>, const DeviceGroupOptions&) {
  return absl::UnavailableError(kNoCuda);
}
absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfShards(
    std::vector<std::unique_ptr<const DeviceIndex>>, absl::Span<const uint64_t>,
    absl::Span<const uint64_t>, const DeviceGroupOptions&) {
  return absl::UnavailableError(kNoCuda);
}
KeyKind DeviceGroup::kind() const {
  return KeyKind::kU32;
}
uint64_t DeviceGroup::size() const {
  return 0;
}
bool DeviceGroup::replicated() const {
  return false;
}
bool DeviceGroup::has_wide_rows() const {
  return false;
}
size_t DeviceGroup::members() const {
  return 0;
}
const DeviceIndex& DeviceGroup::member(size_t) const {
  std::abort();  // there is none
}
size_t DeviceGroup::lost_members() const {
  return 0;
}
std::string DeviceGroup::description() const {
  return kNoCuda;
}
uint64_t DeviceGroup::memory_bytes() const {
  return 0;
}
absl::Status DeviceGroup::Answer(const WideDeviceBatch&, DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::StatusOr<const DeviceIndex*> DeviceGroup::On(int) const {
  return absl::UnavailableError(kNoCuda);
}
absl::Status DeviceGroup::Answer(const Batch&) const {
  return absl::UnavailableError(kNoCuda);
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> gpu::MakeGpuIndex(FactoryString factory, SortedRun) {
  return Unavailable(factory.text);
}
absl::StatusOr<gpu::DeviceBytes> gpu::PredictDeviceBytes(FactoryString factory, const SortedRun&,
                                                         int) {
  return Unavailable(factory.text);
}

}  // namespace cairn
