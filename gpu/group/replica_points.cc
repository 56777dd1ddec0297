#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/internal/peer_exchange.h"
#include "gpu/group/group_state.h"
#include "gpu/group/peer_copy.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// One batch of point queries, split evenly across the replicas. A replica on the batch's own device
// reads the keys and writes the results in place. The others use copies, chunk by chunk, on two
// alternating streams, so that copies overlap with searches.
class ReplicaCall {
 public:
  ReplicaCall(const GroupState& group, const PointQuery& query, GroupContext& context)
      : group_(group), query_(query), context_(context), source_(context.source) {}

  absl::Status Run(cudaStream_t after) {
    const OnDevice on_source(source_);
    RETURN_IF_ERROR(context_.start->Record(after));
    RETURN_IF_ERROR(context_.start->HoldUp(stream()));
    RETURN_IF_ERROR(Divide());
    for (Part& part : parts_) RETURN_IF_ERROR(Of(part, Prepare(part)));
    for (size_t chunk = 0;; ++chunk) {
      bool any = false;
      for (const Part& part : parts_) {
        if (chunk * part.chunk >= part.size) continue;
        any = true;
        RETURN_IF_ERROR(Of(part, Start(part, chunk)));
      }
      if (!any) break;
    }
    for (const Part& part : parts_) RETURN_IF_ERROR(Of(part, WaitFor(part)));
    return context_.stream->Wait();
  }

  std::optional<size_t> failed() const { return failed_; }

 private:
  // One replica's part of the batch.
  struct Part {
    size_t member = 0;
    size_t first = 0, size = 0;
    size_t chunk = 0;
    bool in_place = false;  // keys and results are in the caller's memory
    DeviceBuffer<char> far, near;
  };

  cudaStream_t stream() const { return context_.stream->get(); }
  size_t ChunkKeys(const Part& part) const { return Padded(part.chunk * KeyBytes(group_.kind())); }
  size_t ChunkAnswers(const Part& part) const {
    return Padded(part.chunk * AnswerBytes(query_.operation));
  }
  bool IsLocal(const Part& part) const { return group_.members()[part.member].device == source_; }
  // Whether results only need to be copied.
  bool AreFinal() const { return !query_.answers.wide; }

  absl::Status Of(const Part& part, absl::Status status) {
    if (!status.ok()) failed_ = part.member;
    return status;
  }

  absl::Status Divide() {
    std::vector<size_t> living;
    for (size_t i = 0; i < group_.members().size(); ++i) {
      if (!context_.lost[i]) living.push_back(i);
    }
    if (living.empty()) {
      return absl::UnavailableError("device group: every device is lost");
    }
    const size_t size = query_.keys.size();
    if (size < group_.options().min_split) {
      const auto own = std::ranges::find_if(
          living, [&](size_t i) { return group_.members()[i].device == source_; });
      living = {own != living.end() ? *own : living.front()};
    }
    constexpr size_t kMultiple = 64;  // whole cache lines of keys
    for (size_t i = 0; i < living.size(); ++i) {
      Part part;
      part.member = living[i];
      part.first = CutOf(size, living.size(), i, kMultiple);
      part.size = CutOf(size, living.size(), i + 1, kMultiple) - part.first;
      if (part.size == 0) continue;
      part.in_place =
          IsLocal(part) && AreFinal() && group_.options().exchange != PeerExchange::kCopies;
      part.chunk = part.in_place ? part.size : std::min(group_.options().chunk_queries, part.size);
      parts_.push_back(std::move(part));
    }
    return absl::OkStatus();
  }

  absl::Status Prepare(Part& part) {
    RETURN_IF_ERROR(MayCallMember(static_cast<int>(part.member)));
    const MemberLane& lane = context_.lanes[part.member];
    {
      const OnDevice on_member(group_.members()[part.member].device);
      for (const std::optional<Stream>& own : lane.streams) {
        RETURN_IF_ERROR(context_.start->HoldUp(own->get()));
      }
      if (part.in_place) return absl::OkStatus();
      const cudaStream_t first = lane.streams[0]->get();
      RETURN_IF_ERROR(
          Resize(&part.far, kChunkSlots * (ChunkKeys(part) + ChunkAnswers(part)), first));
      RETURN_IF_ERROR(lane.done[0]->Record(first));
      RETURN_IF_ERROR(lane.done[0]->HoldUp(lane.streams[1]->get()));
    }
    if (AreFinal()) return absl::OkStatus();
    RETURN_IF_ERROR(Resize(&part.near, kChunkSlots * ChunkAnswers(part), stream()));
    for (size_t slot = 0; slot < kChunkSlots; ++slot) {
      RETURN_IF_ERROR(lane.taken[slot]->Record(stream()));
    }
    return absl::OkStatus();
  }

  absl::Status Start(const Part& part, size_t chunk) {
    RETURN_IF_ERROR(MayCallMember(static_cast<int>(part.member)));
    const GroupMember& member = group_.members()[part.member];
    const MemberLane& lane = context_.lanes[part.member];
    const size_t slot = chunk % kChunkSlots;
    const cudaStream_t member_stream = lane.streams[slot]->get();
    const size_t offset = chunk * part.chunk;
    const size_t count = std::min(part.chunk, part.size - offset);
    const DeviceKeys keys = SliceOf(query_.keys, part.first + offset, count);
    const AnswerColumn answers = From(query_.answers, query_.operation, part.first + offset);
    const OnDevice on_member(member.device);
    if (part.in_place) {
      return member.index->Execute(PointBatch(query_.operation, keys, answers.data), member_stream);
    }
    char* const far_keys = part.far.data() + slot * (ChunkKeys(part) + ChunkAnswers(part));
    char* const far_answers = far_keys + ChunkKeys(part);
    RETURN_IF_ERROR(CopyBetween(far_keys, member.device, keys.data(), source_,
                                count * KeyBytes(group_.kind()), member_stream));
    RETURN_IF_ERROR(member.index->Execute(
        PointBatch(query_.operation, KeysIn(group_.kind(), far_keys, count), far_answers),
        member_stream));
    char* back = static_cast<char*>(answers.data);
    if (!AreFinal()) {
      back = part.near.data() + slot * ChunkAnswers(part);
      RETURN_IF_ERROR(lane.taken[slot]->HoldUp(member_stream));
    }
    RETURN_IF_ERROR(CopyBetween(back, source_, far_answers, member.device,
                                count * AnswerBytes(query_.operation), member_stream));
    if (AreFinal()) return absl::OkStatus();
    RETURN_IF_ERROR(lane.done[slot]->Record(member_stream));
    const OnDevice on_source(source_);
    RETURN_IF_ERROR(lane.done[slot]->HoldUp(stream()));
    RETURN_IF_ERROR(EnqueueWiden(back, count, 0, answers, stream()));
    return lane.taken[slot]->Record(stream());
  }

  absl::Status WaitFor(const Part& part) {
    for (const std::optional<Stream>& own : context_.lanes[part.member].streams) {
      RETURN_IF_ERROR(own->Wait());
    }
    return MayCallMember(static_cast<int>(part.member));
  }

  const GroupState& group_;
  const PointQuery& query_;
  GroupContext& context_;
  const int source_;
  std::vector<Part> parts_;
  std::optional<size_t> failed_;
};

}  // namespace

GroupOutcome AnswerFromReplicas(const GroupState& group, const PointQuery& query,
                                GroupContext& context, cudaStream_t after) {
  ReplicaCall call(group, query, context);
  absl::Status status = Guarded("executing a batch on the replicas of a device group",
                                [&] { return call.Run(after); });
  if (!status.ok()) context.Drain();
  return {std::move(status), call.failed()};
}

}  // namespace cairn::gpu
