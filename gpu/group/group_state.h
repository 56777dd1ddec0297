#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/device/group.h"
#include "gpu/group/group_context.h"
#include "gpu/group/point_query.h"
#include "gpu/group/query_partition.h"
#include "gpu/group/shard_cuts.h"
#include "index/machine/mutex.h"

namespace cairn::gpu {

// One of a group's members: a replica or a shard.
struct GroupMember {
  int device = 0;
  // Owned by whoever has the state.
  const DeviceIndex* index = nullptr;
  std::optional<SortedRun> run;  // its entries, where they are on the host
  uint64_t first_position = 0;   // of its entries among the group's
  uint64_t row_offset = 0;       // what is added to its rows
};

// What a group is, and which of its devices are lost. Immutable but for that; thread-safe.
class GroupState {
 public:
  // `routing` is null for replicas. Asks the devices which of them reach each other.
  static absl::StatusOr<std::unique_ptr<GroupState>> Create(std::vector<GroupMember> members,
                                                            std::optional<ShardRouting> routing,
                                                            const DeviceGroupOptions& options);

  PhysicalType kind() const { return kind_; }
  uint64_t size() const { return size_; }
  bool replicated() const { return !routing_.has_value(); }
  const std::vector<GroupMember>& members() const { return members_; }
  const DeviceGroupOptions& options() const { return options_; }
  // Requires shards.
  const ShardRouting& routing() const { return *routing_; }

  bool HasDevice(int device) const;
  // Whether kernels of `source` write to the member's memory, and read it.
  bool Reaches(int source, size_t member) const;

  bool IsLost(size_t member) const { return lost_[member].load(std::memory_order_relaxed); }
  void SetLost(size_t member) { lost_[member].store(true, std::memory_order_relaxed); }
  size_t LostMembers() const;
  // A member that is not lost, on `device` if there is one; none where all are.
  std::optional<size_t> LivingMember(std::optional<int> device) const;

  // What answers on the CPU for the member. Unavailable, naming it, where nothing does.
  absl::StatusOr<const OrderedIndex*> FallbackOf(size_t member) const;
  // The same for a run with the entries of all; `run` as the member's.
  absl::StatusOr<const OrderedIndex*> FallbackOfAll(const std::optional<SortedRun>& run) const;

  // A context for a batch on `source`, to be given back only if nothing failed.
  absl::StatusOr<std::unique_ptr<GroupContext>> TakeContext(int source) const;
  void GiveBack(std::unique_ptr<GroupContext> context) const;

  // Answers points in memory of `source`, which is a device of the group's, behind the work that
  // `after` has now, a stream of that device. Waits. A member that is lost in between is marked so,
  // and the batch is asked again.
  absl::Status Execute(const PointQuery& query, int source, cudaStream_t after);

 private:
  struct Fallback {
    Mutex mutex;
    bool made ABSL_GUARDED_BY(mutex) = false;
    absl::Status status ABSL_GUARDED_BY(mutex);
    std::unique_ptr<OrderedIndex> index ABSL_GUARDED_BY(mutex);
  };

  GroupState() = default;
  absl::Status FindPeers();
  absl::StatusOr<const OrderedIndex*> MakeOnce(const std::optional<SortedRun>& run,
                                               const std::string& name, Fallback& fallback) const;

  std::vector<GroupMember> members_;
  std::optional<ShardRouting> routing_;
  DeviceGroupOptions options_;
  PhysicalType kind_ = PhysicalType::kU32;
  uint64_t size_ = 0;
  std::vector<std::vector<bool>> reaches_;  // [source device's first member][member]
  std::unique_ptr<std::atomic<bool>[]> lost_;
  std::unique_ptr<Fallback[]> fallbacks_;  // of each member, then of all
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<GroupContext>> idle_ ABSL_GUARDED_BY(mutex_);
};

// What came of an attempt: where it failed for a member's sake, which one it was.
struct GroupOutcome {
  absl::Status status;
  std::optional<size_t> member;
};

// One attempt each, with the members that are not lost. Nothing is in flight afterwards.
GroupOutcome AnswerFromShards(const GroupState& group, const PointQuery& query,
                              GroupContext& context, cudaStream_t after);
GroupOutcome AnswerFromReplicas(const GroupState& group, const PointQuery& query,
                                GroupContext& context, cudaStream_t after);

}  // namespace cairn::gpu
