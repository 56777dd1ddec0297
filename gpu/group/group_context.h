#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/runtime/pinned_memory.h"
#include "gpu/runtime/stream.h"

namespace cairn::gpu {

// An event without a time, of the current device. Movable.
class Event {
 public:
  static absl::StatusOr<Event> Create();
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }

  // After what `stream`, of the event's device, has been given.
  absl::Status Record(cudaStream_t stream) const;
  // Makes `stream`, of the current device, wait for it.
  absl::Status HoldUp(cudaStream_t stream) const;
  absl::Status Wait() const;

 private:
  Event() = default;
  cudaEvent_t event_ = nullptr;
};

// Chunks that are under way at a time.
inline constexpr size_t kChunkSlots = 2;

// What a call works with on one member. Streams and `done` are of the member's device, `taken` of
// the batch's.
struct MemberLane {
  std::array<std::optional<Stream>, kChunkSlots> streams;
  std::array<std::optional<Event>, kChunkSlots> done;
  std::array<std::optional<Event>, kChunkSlots> taken;
};

// What a call works with whose batch is on one device: kept for the next, and used by one at a
// time.
struct GroupContext {
  // `lost[i]` leaves member i, on devices[i], without a lane.
  static absl::StatusOr<std::unique_ptr<GroupContext>> Create(int source,
                                                              const std::vector<int>& devices,
                                                              const std::vector<bool>& lost);

  // Waits for all that is under way, whatever it says.
  void Drain();

  int source = 0;
  std::vector<bool> lost;
  std::optional<Stream> stream;  // of the source
  std::optional<Event> start;
  std::array<std::optional<Event>, kChunkSlots> partitioned;
  PinnedMemory counts;  // [slots][members] of uint32_t
  std::vector<MemberLane> lanes;
};

}  // namespace cairn::gpu
