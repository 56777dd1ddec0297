#include "gpu/group/group_context.h"

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

absl::StatusOr<Event> Event::Create() {
  Event event;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaEventCreateWithFlags(&event.event_, cudaEventDisableTiming));
  return event;
}

absl::Status Event::Record(cudaStream_t stream) const {
  CAIRN_RETURN_IF_CUDA_FAILS(cudaEventRecord(event_, stream));
  return absl::OkStatus();
}

absl::Status Event::HoldUp(cudaStream_t stream) const {
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamWaitEvent(stream, event_));
  return absl::OkStatus();
}

absl::Status Event::Wait() const {
  CAIRN_RETURN_IF_CUDA_FAILS(cudaEventSynchronize(event_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GroupContext>> GroupContext::Create(int source,
                                                                   const std::vector<int>& devices,
                                                                   const std::vector<bool>& lost) {
  const BesideCaptures beside;
  auto context = std::make_unique<GroupContext>();
  context->source = source;
  context->lost = lost;
  context->lanes.resize(devices.size());
  const OnDevice on_source(source);
  ASSIGN_OR_RETURN(context->stream, Stream::Create());
  ASSIGN_OR_RETURN(context->start, Event::Create());
  ASSIGN_OR_RETURN(context->counts,
                   PinnedMemory::Allocate(kChunkSlots * devices.size() * sizeof(uint32_t)));
  for (std::optional<Event>& event : context->partitioned) {
    ASSIGN_OR_RETURN(event, Event::Create());
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (lost[i]) continue;
    MemberLane& lane = context->lanes[i];
    for (size_t slot = 0; slot < kChunkSlots; ++slot) {
      ASSIGN_OR_RETURN(lane.taken[slot], Event::Create());
      const OnDevice on_member(devices[i]);
      ASSIGN_OR_RETURN(lane.streams[slot], Stream::Create());
      ASSIGN_OR_RETURN(lane.done[slot], Event::Create());
    }
  }
  return context;
}

void GroupContext::Drain() {
  for (const MemberLane& lane : lanes) {
    for (const std::optional<Stream>& member : lane.streams) {
      if (member.has_value()) (void)member->Wait();
    }
  }
  if (stream.has_value()) (void)stream->Wait();
}

}  // namespace cairn::gpu
