#include "cairn/device/join.h"

#include <cuda_runtime.h>

#include "absl/strings/str_format.h"
#include "gpu/join/merge_join.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status CheckJoinSides(const DeviceEntries& left, const DeviceEntries& right) {
  for (const DeviceEntries* side : {&left, &right}) {
    const char* const name = side == &left ? "left" : "right";
    if (side->keys.kind() == PhysicalType::kBytes && !side->keys.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("join on a device: expected integer %s keys, got byte strings", name));
    }
    if (side->size() > kMaxEntries) {
      return absl::InvalidArgumentError(
          absl::StrFormat("join on a device: got %d %s entries, expected at most %d", side->size(),
                          name, kMaxEntries));
    }
  }
  if (left.keys.empty() || right.keys.empty() || left.keys.kind() == right.keys.kind()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("join on a device: left keys are %s, but right keys are %s",
                      PhysicalTypeName(left.keys.kind()), PhysicalTypeName(right.keys.kind())));
}

template <typename Key>
gpu::JoinSide<Key> SideOf(const DeviceEntries& entries) {
  return {static_cast<const Key*>(entries.keys.data()), entries.row_ids,
          static_cast<uint32_t>(entries.size())};
}

// Calls enqueue(left, right) on the stream's device, or sets the total to 0 if there are no pairs.
template <typename Enqueue>
absl::Status JoinSides(const DeviceEntries& left, const DeviceEntries& right, uint64_t* total,
                       DeviceStream stream, Enqueue enqueue) {
  return Guarded("joining on a device", [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckJoinSides(left, right));
    const gpu::BesideCaptures beside;
    // CUDA cannot report the device of a stream that is being captured.
    cudaPointerAttributes memory = {};
    CAIRN_RETURN_IF_CUDA_FAILS(cudaPointerGetAttributes(&memory, total));
    if (memory.type != cudaMemoryTypeDevice && memory.type != cudaMemoryTypeManaged) {
      return absl::InvalidArgumentError("join on a device: `total` must be in device memory");
    }
    const gpu::OnDevice on_device(memory.device);
    if (left.keys.empty() || right.keys.empty()) {
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(total, 0, sizeof(*total), stream));
      return absl::OkStatus();
    }
    return left.keys.kind() == PhysicalType::kU32
               ? enqueue(SideOf<uint32_t>(left), SideOf<uint32_t>(right))
               : enqueue(SideOf<uint64_t>(left), SideOf<uint64_t>(right));
  });
}

}  // namespace

absl::Status JoinDevice(const DeviceEntries& left, const DeviceEntries& right,
                        const DevicePairs& pairs, DeviceStream stream) {
  return JoinSides(left, right, pairs.total, stream, [&](const auto& a, const auto& b) {
    return gpu::EnqueueJoin(a, b, pairs, stream);
  });
}

absl::Status CountDeviceJoin(const DeviceEntries& left, const DeviceEntries& right, uint64_t* total,
                             DeviceStream stream) {
  return JoinSides(left, right, total, stream, [&](const auto& a, const auto& b) {
    return gpu::EnqueueCountJoin(a, b, total, stream);
  });
}

}  // namespace cairn
