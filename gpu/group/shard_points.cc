#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
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

// One batch of point queries, sent to the shards chunk by chunk. While the shards search one chunk,
// the batch's device brings back the previous chunk and sends the next one. On that device, both
// directions alternate on one stream, so that the memory of a slot is reused only after its
// previous chunk is done.
class ShardCall {
 public:
  ShardCall(const GroupState& group, const PointQuery& query, GroupContext& context)
      : group_(group),
        query_(query),
        context_(context),
        shards_(group.members().size()),
        chunk_(std::min(group.options().chunk_queries, query.keys.size())),
        chunks_((query.keys.size() + chunk_ - 1) / chunk_),
        slots_(std::min(chunks_, kChunkSlots)),
        source_(context.source),
        lanes_(shards_) {}

  absl::Status Run(cudaStream_t after) {
    const OnDevice on_source(source_);
    RETURN_IF_ERROR(context_.start->Record(after));
    RETURN_IF_ERROR(context_.start->HoldUp(stream()));
    RETURN_IF_ERROR(Allocate());
    RETURN_IF_ERROR(Send(0));
    for (size_t chunk = 0; chunk < chunks_; ++chunk) {
      if (chunk + 1 < chunks_) RETURN_IF_ERROR(Send(chunk + 1));
      RETURN_IF_ERROR(Search(chunk));
      RETURN_IF_ERROR(Return(chunk));
    }
    for (size_t s = 0; s < shards_; ++s) {
      if (lanes_[s].fallback == nullptr) RETURN_IF_ERROR(Of(s, WaitFor(s)));
    }
    return context_.stream->Wait();
  }

  std::optional<size_t> failed() const { return failed_; }

 private:
  // The queries of one shard and their results, in each slot. `near` is memory of the batch's
  // device that is copied to the member's device or to the CPU; it is null if the batch's device
  // can access the member's memory.
  struct Lane {
    const OrderedIndex* fallback = nullptr;
    DeviceBuffer<char> near, far;
  };

  cudaStream_t stream() const { return context_.stream->get(); }
  size_t CountOf(size_t chunk) const {
    return std::min(chunk_, query_.keys.size() - chunk * chunk_);
  }
  size_t KeysBytes() const { return Padded(chunk_ * KeyBytes(group_.kind())); }
  size_t AnswersBytes() const { return Padded(chunk_ * AnswerBytes(query_.operation)); }
  char* KeysIn(const DeviceBuffer<char>& buffer, size_t slot) const {
    return buffer.data() + slot * (KeysBytes() + AnswersBytes());
  }
  char* AnswersIn(const DeviceBuffer<char>& buffer, size_t slot) const {
    return KeysIn(buffer, slot) + KeysBytes();
  }
  // The memory that the batch's device writes and reads.
  const DeviceBuffer<char>& NearOf(size_t s) const {
    return lanes_[s].near.data() != nullptr ? lanes_[s].near : lanes_[s].far;
  }
  uint32_t* CountsOf(size_t slot) const {
    return reinterpret_cast<uint32_t*>(context_.counts.data()) + slot * shards_;
  }
  PartitionNotes NotesOf(size_t slot) const {
    return {places_.data() + slot * chunk_, parts_.data() + slot * TilesOf(Chunk32()) * shards_,
            counts_.data() + slot * shards_};
  }
  uint32_t Chunk32() const { return static_cast<uint32_t>(chunk_); }

  // Records that an error was caused by member s.
  absl::Status Of(size_t s, absl::Status status) {
    if (!status.ok()) failed_ = s;
    return status;
  }

  absl::Status Allocate() {
    const size_t bytes = slots_ * (KeysBytes() + AnswersBytes());
    RETURN_IF_ERROR(Resize(&places_, slots_ * chunk_, stream()));
    RETURN_IF_ERROR(Resize(&parts_, slots_ * TilesOf(Chunk32()) * shards_, stream()));
    RETURN_IF_ERROR(Resize(&counts_, slots_ * shards_, stream()));
    for (size_t s = 0; s < shards_; ++s) {
      Lane& lane = lanes_[s];
      if (context_.lost[s]) {
        ASSIGN_OR_RETURN(lane.fallback, group_.FallbackOf(s));
      } else {
        RETURN_IF_ERROR(Of(s, AllocateFar(s, bytes)));
      }
      if (lane.fallback != nullptr || !group_.Reaches(source_, s)) {
        RETURN_IF_ERROR(Resize(&lane.near, bytes, stream()));
      }
    }
    return absl::OkStatus();
  }
  absl::Status AllocateFar(size_t s, size_t bytes) {
    RETURN_IF_ERROR(MayCallMember(static_cast<int>(s)));
    const OnDevice on_member(group_.members()[s].device);
    const cudaStream_t lane_stream = context_.lanes[s].streams[0]->get();
    RETURN_IF_ERROR(Resize(&lanes_[s].far, bytes, lane_stream));
    // The batch's device may write to the memory as soon as it is allocated.
    RETURN_IF_ERROR(context_.lanes[s].done[0]->Record(lane_stream));
    const OnDevice on_source(source_);
    return context_.lanes[s].done[0]->HoldUp(stream());
  }

  template <typename Key>
  absl::Status Partition(const Key* keys, uint32_t size, const ShardArrays& to, size_t slot) {
    const std::vector<uint64_t>& bounds =
        query_.operation == Operation::kUpperBound ? group_.routing().last : group_.routing().first;
    ShardBounds<Key> routing;
    for (const uint64_t bound : bounds) {
      routing.bounds[routing.size++] = static_cast<Key>(bound);
    }
    return EnqueuePartition(keys, size, routing, static_cast<int>(shards_), to, NotesOf(slot),
                            stream());
  }

  // Sends the chunk's queries to their shards, and the number of queries per shard to the host.
  absl::Status Send(size_t chunk) {
    const size_t slot = chunk % kChunkSlots, first = chunk * chunk_;
    const auto size = static_cast<uint32_t>(CountOf(chunk));
    ShardArrays to;
    for (size_t s = 0; s < shards_; ++s) to.of[s] = KeysIn(NearOf(s), slot);
    const size_t count_bytes = shards_ * sizeof(uint32_t);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(NotesOf(slot).counts, 0, count_bytes, stream()));
    RETURN_IF_ERROR(group_.kind() == PhysicalType::kU32
                        ? Partition(query_.keys.u32() + first, size, to, slot)
                        : Partition(query_.keys.u64() + first, size, to, slot));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(CountsOf(slot), NotesOf(slot).counts, count_bytes,
                                               cudaMemcpyDeviceToHost, stream()));
    return context_.partitioned[slot]->Record(stream());
  }

  absl::Status Search(size_t chunk) {
    const size_t slot = chunk % kChunkSlots;
    RETURN_IF_ERROR(context_.partitioned[slot]->Wait());
    for (size_t s = 0; s < shards_; ++s) {
      const size_t count = CountsOf(slot)[s];
      if (count == 0) continue;
      if (lanes_[s].fallback != nullptr) {
        RETURN_IF_ERROR(SearchOnHost(s, slot, count));
      } else {
        RETURN_IF_ERROR(Of(s, SearchOnMember(s, slot, count)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SearchOnMember(size_t s, size_t slot, size_t count) {
    RETURN_IF_ERROR(MayCallMember(static_cast<int>(s)));
    const GroupMember& member = group_.members()[s];
    const Lane& lane = lanes_[s];
    const MemberLane& own = context_.lanes[s];
    const cudaStream_t member_stream = own.streams[0]->get();
    {
      const OnDevice on_member(member.device);
      RETURN_IF_ERROR(context_.partitioned[slot]->HoldUp(member_stream));
      if (lane.near.data() != nullptr) {
        RETURN_IF_ERROR(CopyBetween(KeysIn(lane.far, slot), member.device, KeysIn(lane.near, slot),
                                    source_, count * KeyBytes(group_.kind()), member_stream));
      }
      const DeviceKeys keys = gpu::KeysIn(group_.kind(), KeysIn(lane.far, slot), count);
      RETURN_IF_ERROR(member.index->Execute(
          PointBatch(query_.operation, keys, AnswersIn(lane.far, slot)), member_stream));
      if (lane.near.data() != nullptr) {
        RETURN_IF_ERROR(CopyBetween(AnswersIn(lane.near, slot), source_, AnswersIn(lane.far, slot),
                                    member.device, count * AnswerBytes(query_.operation),
                                    member_stream));
      }
      RETURN_IF_ERROR(own.done[slot]->Record(member_stream));
    }
    return own.done[slot]->HoldUp(stream());
  }

  // Executes the queries on the CPU; the results are available when the stream continues. The next
  // chunk's partitioning is already in the stream and runs first.
  absl::Status SearchOnHost(size_t s, size_t slot, size_t count) {
    const Lane& lane = lanes_[s];
    const size_t key_bytes = count * KeyBytes(group_.kind());
    const auto keys = std::make_unique<uint64_t[]>((key_bytes + 7) / 8);
    const auto answers = std::make_unique<uint32_t[]>(count);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(keys.get(), KeysIn(lane.near, slot), key_bytes,
                                               cudaMemcpyDeviceToHost, stream()));
    RETURN_IF_ERROR(context_.stream->Wait());
    const KeyBatch batch =
        group_.kind() == PhysicalType::kU32
            ? KeyBatch(absl::MakeConstSpan(reinterpret_cast<uint32_t*>(keys.get()), count))
            : KeyBatch(absl::MakeConstSpan(keys.get(), count));
    Batch asked{query_.operation, batch};
    asked.values = absl::MakeSpan(answers.get(), count);
    asked.found = absl::MakeSpan(reinterpret_cast<bool*>(answers.get()), count);
    RETURN_IF_ERROR(lane.fallback->Execute(asked));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(AnswersIn(lane.near, slot), answers.get(),
                                               count * AnswerBytes(query_.operation),
                                               cudaMemcpyHostToDevice, stream()));
    return context_.stream->Wait();
  }

  absl::Status Return(size_t chunk) {
    const size_t slot = chunk % kChunkSlots;
    ShardArrays answers;
    ShardOffsets offsets;
    for (size_t s = 0; s < shards_; ++s) {
      const GroupMember& member = group_.members()[s];
      answers.of[s] = AnswersIn(NearOf(s), slot);
      offsets.of[s] =
          query_.operation == Operation::kFindFirst ? member.row_offset : member.first_position;
    }
    return EnqueueReturn(query_.operation, answers, static_cast<uint32_t>(CountOf(chunk)),
                         static_cast<int>(shards_), offsets, NotesOf(slot),
                         From(query_.answers, query_.operation, chunk * chunk_), stream());
  }

  absl::Status WaitFor(size_t s) {
    RETURN_IF_ERROR(context_.lanes[s].streams[0]->Wait());
    return MayCallMember(static_cast<int>(s));
  }

  const GroupState& group_;
  const PointQuery& query_;
  GroupContext& context_;
  const size_t shards_, chunk_, chunks_, slots_;
  const int source_;
  std::vector<Lane> lanes_;
  DeviceBuffer<uint16_t> places_;
  DeviceBuffer<TilePart> parts_;
  DeviceBuffer<uint32_t> counts_;
  std::optional<size_t> failed_;
};

}  // namespace

GroupOutcome AnswerFromShards(const GroupState& group, const PointQuery& query,
                              GroupContext& context, cudaStream_t after) {
  ShardCall call(group, query, context);
  absl::Status status =
      Guarded("executing a batch on the shards of a device group", [&] { return call.Run(after); });
  if (!status.ok()) context.Drain();
  return {std::move(status), call.failed()};
}

}  // namespace cairn::gpu
