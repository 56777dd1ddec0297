#include "cairn/device.h"

#include <cuda_runtime.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_check.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/factory_string.h"

namespace cairn {
namespace {

// Checks the arguments of an update.
absl::Status CheckUpdate(const DeviceIndex& index, DeviceKeys keys, DeviceStream stream) {
  if (!keys.empty() && keys.kind() != index.kind()) {
    return absl::InvalidArgumentError(absl::StrFormat("got %s keys, but the index has %s keys",
                                                      PhysicalTypeName(keys.kind()),
                                                      PhysicalTypeName(index.kind())));
  }
  RETURN_IF_ERROR(gpu::CheckNotCapturing("an insertion", "it", stream));
  if (stream == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int device, gpu::DeviceOfStream(stream));
  if (device == index.device()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("insertion: the stream belongs to device %d, but the index is on device %d",
                      device, index.device()));
}

// Runs update() after all enqueued work that reads the index.
template <typename Update>
auto RunUpdate(const DeviceIndex& index, DeviceKeys keys, DeviceStream stream, Update update)
    -> decltype(update()) {
  return Guarded("inserting into an index", [&]() -> decltype(update()) {
    const gpu::OnDevice on_device(index.device());
    RETURN_IF_ERROR(CheckUpdate(index, keys, stream));
    const gpu::BesideCaptures beside;
    RETURN_IF_ERROR(gpu::WaitForUses(index.device(), stream));
    return update();
  });
}

// Calls make(), if `text` names a structure that supports insertions.
template <typename Make>
absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatable(std::string_view text,
                                                                    Make make) {
  ASSIGN_OR_RETURN(const FactoryString factory, FactoryString::Parse(text));
  if (factory.device == "gpu" && factory.structure != "btree") {
    return absl::UnimplementedError(
        absl::StrFormat("ordered index '%s': only gpu:btree supports insertions", text));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceIndex> index, make());
  return std::unique_ptr<UpdatableDeviceIndex>(static_cast<UpdatableDeviceIndex*>(index.release()));
}

}  // namespace

absl::StatusOr<size_t> UpdatableDeviceIndex::Insert(DeviceKeys keys, const RowId* row_ids,
                                                    DeviceStream stream) {
  return RunUpdate(*this, keys, stream, [&]() -> absl::StatusOr<size_t> {
    if (keys.empty()) return 0;
    return InsertEntries(keys, row_ids, stream);
  });
}

absl::Status UpdatableDeviceIndex::BulkInsert(DeviceKeys keys, const RowId* row_ids,
                                              EqualKeys equal_keys, DeviceStream stream) {
  return RunUpdate(*this, keys, stream,
                   [&] { return BulkInsertEntries(keys, row_ids, equal_keys, stream); });
}

absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, DeviceKeys keys, const RowId* row_ids, DeviceStream stream) {
  return MakeUpdatable(factory, [&] { return MakeDeviceIndex(factory, keys, row_ids, stream); });
}

absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, const SortedRun& run, int device) {
  return MakeUpdatable(factory, [&] { return MakeDeviceIndex(factory, run, device); });
}

}  // namespace cairn
