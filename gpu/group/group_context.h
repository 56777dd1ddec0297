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

// A CUDA event without timing, on the current device. Movable.
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

  // Records the event after all work enqueued so far on `stream`, which must be on the event's
  // device.
  absl::Status Record(cudaStream_t stream) const;
  // Makes `stream`, which must be on the current device, wait for the event.
  absl::Status HoldUp(cudaStream_t stream) const;
  absl::Status Wait() const;

 private:
  Event() = default;
  cudaEvent_t event_ = nullptr;
};

// Chunks that are in flight at a time.
inline constexpr size_t kChunkSlots = 2;

// The resources of a call for one member. Streams and `done` belong to the member's device, `taken`
// to the batch's device.
struct MemberLane {
  std::array<std::optional<Stream>, kChunkSlots> streams;
  std::array<std::optional<Event>, kChunkSlots> done;
  std::array<std::optional<Event>, kChunkSlots> taken;
};

// The resources of a call whose batch is on one device. They are kept for later calls and used by
// one call at a time.
struct GroupContext {
  // If lost[i], member i, on devices[i], gets no lane.
  static absl::StatusOr<std::unique_ptr<GroupContext>> Create(int source,
                                                              const std::vector<int>& devices,
                                                              const std::vector<bool>& lost);

  // Waits for all work in flight and ignores errors.
  void Drain();

  int source = 0;
  std::vector<bool> lost;
  std::optional<Stream> stream;  // on the source device
  std::optional<Event> start;
  std::array<std::optional<Event>, kChunkSlots> partitioned;
  PinnedMemory counts;  // [slots][members] of uint32_t
  std::vector<MemberLane> lanes;
};

}  // namespace cairn::gpu
