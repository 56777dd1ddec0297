// Replaces this folder in a build without CUDA.

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "cairn/device/aggregates.h"
#include "cairn/device/group.h"
#include "cairn/device/index_group.h"
#include "cairn/device/join.h"
#include "gpu/api/gpu_factory.h"

namespace cairn {
namespace {

constexpr char kNoCuda[] = "no CUDA device: Cairn was built without CUDA";

absl::Status Unavailable(std::string_view factory) {
  return absl::UnavailableError(absl::StrFormat("ordered index '%s': %s", factory, kNoCuda));
}

absl::Status NoColumns() {
  return absl::UnavailableError(absl::StrFormat("DeviceIndexGroup: %s", kNoCuda));
}

constexpr char kNoGroups[] = "device group: Cairn was built without CUDA";

absl::Status NoGroup(std::string_view factory) {
  return absl::UnavailableError(absl::StrFormat("ordered index '%s': %s", factory, kNoGroups));
}

}  // namespace

absl::StatusOr<std::vector<Device>> ListDevices() {
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

// No index exists to call these on, but programs that call them must link.
absl::Status DeviceIndex::Execute(const DeviceBatch&, DeviceStream) const {
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
absl::Status Execute(const DeviceIndex&, const DeviceBatch&, const DeviceStrategyOptions&,
                     uint32_t*, DeviceStream) {
  return absl::UnavailableError(kNoCuda);
}

absl::Status DeviceAggregates::Execute(const DeviceRanges&, const DeviceAggregate&,
                                       const DeviceAggregateResults&, DeviceStream) const {
  return absl::UnavailableError(kNoCuda);
}
absl::StatusOr<std::unique_ptr<DeviceAggregates>> MakeDeviceAggregates(
    DeviceKeys, const RowId*, absl::Span<const DeviceColumn>, absl::Span<const DeviceAggregate>,
    DeviceStream) {
  return absl::UnavailableError(kNoCuda);
}
absl::StatusOr<std::unique_ptr<DeviceAggregates>> MakeDeviceAggregates(
    const SortedRun&, absl::Span<const DeviceColumn>, absl::Span<const DeviceAggregate>, int) {
  return absl::UnavailableError(kNoCuda);
}
absl::Status CountDeviceJoin(const DeviceEntries&, const DeviceEntries&, uint64_t*, DeviceStream) {
  return absl::UnavailableError(kNoCuda);
}
absl::Status JoinDevice(const DeviceEntries&, const DeviceEntries&, const DevicePairs&,
                        DeviceStream) {
  return absl::UnavailableError(kNoCuda);
}

absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> DeviceIndexGroup::Create(uint64_t,
                                                                           absl::Span<const Column>,
                                                                           DeviceStream) {
  return NoColumns();
}
absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> DeviceIndexGroup::Create(
    uint64_t, absl::Span<const SortedRun>, int) {
  return NoColumns();
}

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
    std::vector<std::unique_ptr<const DeviceIndex>>, const DeviceGroupOptions&) {
  return absl::UnavailableError(kNoGroups);
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> gpu::MakeGpuIndex(FactoryString factory, SortedRun,
                                                                absl::Span<const int>) {
  return Unavailable(factory.text);
}
absl::StatusOr<gpu::DeviceBytes> gpu::PredictDeviceBytes(FactoryString factory, const SortedRun&,
                                                         int) {
  return Unavailable(factory.text);
}

}  // namespace cairn
