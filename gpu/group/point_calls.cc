#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/internal/peer_exchange.h"
#include "gpu/group/group.h"
#include "gpu/group/peer_copy.h"
#include "gpu/group/query_partition.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// One attempt to execute a batch of point queries. Its queries go to the members chunk by chunk,
// with up to kChunkSlots chunks in flight; each slot has memory for one chunk.
class PointCall {
 public:
  PointCall(const Group& group, const PointQuery& query, GroupContext& context)
      : group_(group), query_(query), context_(context), source_(context.source) {}
  virtual ~PointCall() = default;

  GroupOutcome Run(cudaStream_t after) {
    absl::Status status =
        Guarded(group_.replicated() ? "executing a batch on the replicas of a device group"
                                    : "executing a batch on the shards of a device group",
                [&]() -> absl::Status {
                  const OnDevice on_source(source_);
                  RETURN_IF_ERROR(context_.start->Record(after));
                  RETURN_IF_ERROR(context_.start->HoldUp(stream()));
                  RETURN_IF_ERROR(ExecuteChunks());
                  return context_.stream->Wait();
                });
    if (!status.ok()) context_.Drain();
    return {std::move(status), failed_};
  }

 protected:
  // Memory for the queries of one member and their results, in each slot: `far` is on the member's
  // device, `near` on the batch's.
  struct Lane {
    size_t member = 0;
    size_t chunk = 0;  // queries per chunk
    DeviceBuffer<char> far, near;
  };

  // Executes all chunks and waits for the members; the batch's device is current.
  virtual absl::Status ExecuteChunks() = 0;

  cudaStream_t stream() const { return context_.stream->get(); }
  const MemberLane& ResourcesOf(const Lane& lane) const { return context_.lanes[lane.member]; }
  int DeviceOf(const Lane& lane) const { return group_.at(lane.member).device(); }
  size_t AnswersBytes(const Lane& lane) const {
    return Padded(lane.chunk * AnswerBytes(query_.operation));
  }
  size_t SlotBytes(const Lane& lane) const {
    return Padded(lane.chunk * KeyBytes(group_.kind())) + AnswersBytes(lane);
  }
  // The keys and results of a slot in the lane's near or far memory.
  char* SlotKeys(const Lane& lane, const DeviceBuffer<char>& memory, size_t slot) const {
    return memory.data() + slot * SlotBytes(lane);
  }
  char* SlotAnswers(const Lane& lane, const DeviceBuffer<char>& memory, size_t slot) const {
    return memory.data() + (slot + 1) * SlotBytes(lane) - AnswersBytes(lane);
  }

  // Records that an error was caused by the lane's member.
  absl::Status Of(const Lane& lane, absl::Status status) {
    if (!status.ok()) failed_ = lane.member;
    return status;
  }

  static absl::Status MayCall(const Lane& lane) {
    return MayCallMember(static_cast<int>(lane.member));
  }

  // Allocates far memory for `slots` slots, and records done[0] after that. The member's device
  // must be current.
  absl::Status AllocateFar(Lane& lane, size_t slots) const {
    const cudaStream_t first = ResourcesOf(lane).streams[0]->get();
    RETURN_IF_ERROR(Resize(&lane.far, slots * SlotBytes(lane), first));
    return ResourcesOf(lane).done[0]->Record(first);
  }

  // Enqueues a search of `count` keys on a stream of the lane's member, whose device is current. If
  // `copies`, keys and answers are on the batch's device and are copied through the slot's far
  // memory; the copy of the answers waits for `until`, if not null.
  absl::Status Search(const Lane& lane, size_t slot, size_t count, const void* keys, void* answers,
                      bool copies, const Event* until, cudaStream_t on) const {
    const DeviceIndex& index = group_.member(lane.member);
    if (!copies) {
      return index.Execute(
          PointBatch(query_.operation, KeysIn(group_.kind(), keys, count), answers), on);
    }
    char* const far_keys = SlotKeys(lane, lane.far, slot);
    char* const far_answers = SlotAnswers(lane, lane.far, slot);
    RETURN_IF_ERROR(
        CopyBetween(far_keys, index.device(), keys, source_, count * KeyBytes(group_.kind()), on));
    RETURN_IF_ERROR(index.Execute(
        PointBatch(query_.operation, KeysIn(group_.kind(), far_keys, count), far_answers), on));
    if (until != nullptr) RETURN_IF_ERROR(until->HoldUp(on));
    return CopyBetween(answers, source_, far_answers, index.device(),
                       count * AnswerBytes(query_.operation), on);
  }

  // Waits for the first `streams` streams of the lane's member.
  absl::Status WaitFor(const Lane& lane, size_t streams) const {
    for (size_t i = 0; i < streams; ++i) {
      RETURN_IF_ERROR(ResourcesOf(lane).streams[i]->Wait());
    }
    return MayCall(lane);
  }

  const Group& group_;
  const PointQuery& query_;
  GroupContext& context_;
  const int source_;

 private:
  std::optional<size_t> failed_;
};

// A batch that is split evenly across the replicas. A replica on the batch's own device reads the
// keys and writes the results in place. The others use copies on two alternating streams, so that
// copies overlap with searches.
class ReplicaCall final : public PointCall {
 public:
  using PointCall::PointCall;

 private:
  // One replica's part of the batch. Its near memory has only results, and only if they are wide.
  struct Part : Lane {
    size_t first = 0, size = 0;
    bool in_place = false;  // keys and results are in the caller's memory
  };

  // Whether results only need to be copied.
  bool AreFinal() const { return !query_.answers.wide; }

  absl::Status ExecuteChunks() override {
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
    for (const Part& part : parts_) RETURN_IF_ERROR(Of(part, WaitFor(part, kChunkSlots)));
    return absl::OkStatus();
  }

  absl::Status Divide() {
    std::vector<size_t> living;
    for (size_t i = 0; i < group_.members(); ++i) {
      if (!context_.lost[i]) living.push_back(i);
    }
    if (living.empty()) {
      return absl::UnavailableError("device group: every device is lost");
    }
    const size_t size = query_.keys.size();
    if (size < group_.options().min_split) {
      const auto own =
          std::ranges::find_if(living, [&](size_t i) { return group_.at(i).device() == source_; });
      living = {own != living.end() ? *own : living.front()};
    }
    constexpr size_t kMultiple = 64;  // whole cache lines of keys
    for (size_t i = 0; i < living.size(); ++i) {
      Part part;
      part.member = living[i];
      part.first = CutOf(size, living.size(), i, kMultiple);
      part.size = CutOf(size, living.size(), i + 1, kMultiple) - part.first;
      if (part.size == 0) continue;
      part.in_place = DeviceOf(part) == source_ && AreFinal() &&
                      group_.options().exchange != PeerExchange::kCopies;
      part.chunk = part.in_place ? part.size : std::min(group_.options().chunk_queries, part.size);
      parts_.push_back(std::move(part));
    }
    return absl::OkStatus();
  }

  absl::Status Prepare(Part& part) {
    RETURN_IF_ERROR(MayCall(part));
    const MemberLane& own = ResourcesOf(part);
    {
      const OnDevice on_member(DeviceOf(part));
      for (const std::optional<Stream>& member : own.streams) {
        RETURN_IF_ERROR(context_.start->HoldUp(member->get()));
      }
      if (part.in_place) return absl::OkStatus();
      RETURN_IF_ERROR(AllocateFar(part, kChunkSlots));
      RETURN_IF_ERROR(own.done[0]->HoldUp(own.streams[1]->get()));
    }
    if (AreFinal()) return absl::OkStatus();
    RETURN_IF_ERROR(Resize(&part.near, kChunkSlots * AnswersBytes(part), stream()));
    for (const std::optional<Event>& taken : own.taken) RETURN_IF_ERROR(taken->Record(stream()));
    return absl::OkStatus();
  }

  absl::Status Start(const Part& part, size_t chunk) {
    RETURN_IF_ERROR(MayCall(part));
    const MemberLane& own = ResourcesOf(part);
    const size_t slot = chunk % kChunkSlots;
    const cudaStream_t member_stream = own.streams[slot]->get();
    const size_t offset = chunk * part.chunk;
    const size_t count = std::min(part.chunk, part.size - offset);
    const DeviceKeys keys = SliceOf(query_.keys, part.first + offset, count);
    const AnswerColumn answers = From(query_.answers, query_.operation, part.first + offset);
    const OnDevice on_member(DeviceOf(part));
    if (AreFinal()) {
      return Search(part, slot, count, keys.data(), answers.data, !part.in_place, nullptr,
                    member_stream);
    }
    char* const near = part.near.data() + slot * AnswersBytes(part);
    RETURN_IF_ERROR(
        Search(part, slot, count, keys.data(), near, true, &*own.taken[slot], member_stream));
    RETURN_IF_ERROR(own.done[slot]->Record(member_stream));
    const OnDevice on_source(source_);
    RETURN_IF_ERROR(own.done[slot]->HoldUp(stream()));
    RETURN_IF_ERROR(EnqueueWiden(near, count, 0, answers, stream()));
    return own.taken[slot]->Record(stream());
  }

  std::vector<Part> parts_;
};

// A batch that is sent to the shards. While the shards search one chunk, the batch's device brings
// back the previous chunk and sends the next one. On that device, both directions alternate on one
// stream, so that the memory of a slot is reused only after its previous chunk is done.
class ShardCall final : public PointCall {
 public:
  ShardCall(const Group& group, const PointQuery& query, GroupContext& context)
      : PointCall(group, query, context),
        shards_(group.members()),
        chunk_(std::min(group.options().chunk_queries, query.keys.size())),
        chunks_((query.keys.size() + chunk_ - 1) / chunk_),
        slots_(std::min(chunks_, kChunkSlots)),
        lanes_(shards_) {}

 private:
  // Near memory is copied to the member's device or to the CPU; it is null if the batch's device
  // can access the member's memory.
  struct ShardLane : Lane {
    const OrderedIndex* fallback = nullptr;
  };

  absl::Status ExecuteChunks() override {
    RETURN_IF_ERROR(Allocate());
    RETURN_IF_ERROR(Send(0));
    for (size_t chunk = 0; chunk < chunks_; ++chunk) {
      if (chunk + 1 < chunks_) RETURN_IF_ERROR(Send(chunk + 1));
      RETURN_IF_ERROR(SearchChunk(chunk));
      RETURN_IF_ERROR(Return(chunk));
    }
    for (const ShardLane& lane : lanes_) {
      if (lane.fallback == nullptr) RETURN_IF_ERROR(Of(lane, WaitFor(lane, 1)));
    }
    return absl::OkStatus();
  }

  size_t CountOf(size_t chunk) const {
    return std::min(chunk_, query_.keys.size() - chunk * chunk_);
  }
  // The memory that the batch's device writes and reads.
  static const DeviceBuffer<char>& NearOf(const Lane& lane) {
    return lane.near.data() != nullptr ? lane.near : lane.far;
  }
  uint32_t* CountsOf(size_t slot) const {
    return reinterpret_cast<uint32_t*>(context_.counts.data()) + slot * shards_;
  }
  PartitionNotes NotesOf(size_t slot) const {
    return {places_.data() + slot * chunk_, parts_.data() + slot * TilesOf(Chunk32()) * shards_,
            counts_.data() + slot * shards_};
  }
  uint32_t Chunk32() const { return static_cast<uint32_t>(chunk_); }

  absl::Status Allocate() {
    RETURN_IF_ERROR(Resize(&places_, slots_ * chunk_, stream()));
    RETURN_IF_ERROR(Resize(&parts_, slots_ * TilesOf(Chunk32()) * shards_, stream()));
    RETURN_IF_ERROR(Resize(&counts_, slots_ * shards_, stream()));
    for (size_t s = 0; s < shards_; ++s) {
      ShardLane& lane = lanes_[s];
      lane.member = s;
      lane.chunk = chunk_;
      if (context_.lost[s]) {
        ASSIGN_OR_RETURN(lane.fallback, group_.FallbackOf(s));
      } else {
        RETURN_IF_ERROR(Of(lane, Prepare(lane)));
      }
      if (lane.fallback != nullptr || !group_.Reaches(source_, s)) {
        RETURN_IF_ERROR(Resize(&lane.near, slots_ * SlotBytes(lane), stream()));
      }
    }
    return absl::OkStatus();
  }
  absl::Status Prepare(ShardLane& lane) {
    RETURN_IF_ERROR(MayCall(lane));
    {
      const OnDevice on_member(DeviceOf(lane));
      RETURN_IF_ERROR(AllocateFar(lane, slots_));
    }
    // The batch's device may write to the memory as soon as it is allocated.
    return ResourcesOf(lane).done[0]->HoldUp(stream());
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
    for (const ShardLane& lane : lanes_) to.of[lane.member] = SlotKeys(lane, NearOf(lane), slot);
    const size_t count_bytes = shards_ * sizeof(uint32_t);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(NotesOf(slot).counts, 0, count_bytes, stream()));
    RETURN_IF_ERROR(group_.kind() == PhysicalType::kU32
                        ? Partition(query_.keys.u32() + first, size, to, slot)
                        : Partition(query_.keys.u64() + first, size, to, slot));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(CountsOf(slot), NotesOf(slot).counts, count_bytes,
                                               cudaMemcpyDeviceToHost, stream()));
    return context_.partitioned[slot]->Record(stream());
  }

  absl::Status SearchChunk(size_t chunk) {
    const size_t slot = chunk % kChunkSlots;
    RETURN_IF_ERROR(context_.partitioned[slot]->Wait());
    for (const ShardLane& lane : lanes_) {
      const size_t count = CountsOf(slot)[lane.member];
      if (count == 0) continue;
      if (lane.fallback != nullptr) {
        RETURN_IF_ERROR(SearchOnHost(lane, slot, count));
      } else {
        RETURN_IF_ERROR(Of(lane, SearchOnMember(lane, slot, count)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SearchOnMember(const ShardLane& lane, size_t slot, size_t count) {
    RETURN_IF_ERROR(MayCall(lane));
    const MemberLane& own = ResourcesOf(lane);
    const cudaStream_t member_stream = own.streams[0]->get();
    {
      const OnDevice on_member(DeviceOf(lane));
      RETURN_IF_ERROR(context_.partitioned[slot]->HoldUp(member_stream));
      RETURN_IF_ERROR(Search(lane, slot, count, SlotKeys(lane, NearOf(lane), slot),
                             SlotAnswers(lane, NearOf(lane), slot), lane.near.data() != nullptr,
                             nullptr, member_stream));
      RETURN_IF_ERROR(own.done[slot]->Record(member_stream));
    }
    return own.done[slot]->HoldUp(stream());
  }

  // Executes the queries on the CPU; the results are available when the stream continues. The next
  // chunk's partitioning is already in the stream and runs first.
  absl::Status SearchOnHost(const ShardLane& lane, size_t slot, size_t count) {
    const size_t key_bytes = count * KeyBytes(group_.kind());
    const auto keys = std::make_unique<uint64_t[]>((key_bytes + 7) / 8);
    const auto answers = std::make_unique<uint32_t[]>(count);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(keys.get(), SlotKeys(lane, lane.near, slot),
                                               key_bytes, cudaMemcpyDeviceToHost, stream()));
    RETURN_IF_ERROR(context_.stream->Wait());
    const KeyBatch batch =
        group_.kind() == PhysicalType::kU32
            ? KeyBatch(absl::MakeConstSpan(reinterpret_cast<uint32_t*>(keys.get()), count))
            : KeyBatch(absl::MakeConstSpan(keys.get(), count));
    Batch asked{query_.operation, batch};
    asked.values = absl::MakeSpan(answers.get(), count);
    asked.found = absl::MakeSpan(reinterpret_cast<bool*>(answers.get()), count);
    RETURN_IF_ERROR(lane.fallback->Execute(asked));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(SlotAnswers(lane, lane.near, slot), answers.get(),
                                               count * AnswerBytes(query_.operation),
                                               cudaMemcpyHostToDevice, stream()));
    return context_.stream->Wait();
  }

  absl::Status Return(size_t chunk) {
    const size_t slot = chunk % kChunkSlots;
    ShardArrays answers;
    ShardOffsets offsets;
    for (const ShardLane& lane : lanes_) {
      const GroupMember& member = group_.at(lane.member);
      answers.of[lane.member] = SlotAnswers(lane, NearOf(lane), slot);
      offsets.of[lane.member] =
          query_.operation == Operation::kFindFirst ? member.row_offset : member.first_position;
    }
    return EnqueueReturn(query_.operation, answers, static_cast<uint32_t>(CountOf(chunk)),
                         static_cast<int>(shards_), offsets, NotesOf(slot),
                         From(query_.answers, query_.operation, chunk * chunk_), stream());
  }

  const size_t shards_, chunk_, chunks_, slots_;
  std::vector<ShardLane> lanes_;
  DeviceBuffer<uint16_t> places_;
  DeviceBuffer<TilePart> parts_;
  DeviceBuffer<uint32_t> counts_;
};

}  // namespace

GroupOutcome TryPoints(const Group& group, const PointQuery& query, GroupContext& context,
                       cudaStream_t after) {
  if (group.replicated()) return ReplicaCall(group, query, context).Run(after);
  return ShardCall(group, query, context).Run(after);
}

}  // namespace cairn::gpu
