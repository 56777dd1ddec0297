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

// A member of a group: a replica or a shard.
struct GroupMember {
  int device = 0;
  // Owned by the owner of the GroupState.
  const DeviceIndex* index = nullptr;
  std::optional<SortedRun> run;  // the member's entries, if they are in host memory
  uint64_t first_position = 0;   // of the member's first entry among the group's
  uint64_t row_offset = 0;       // added to the member's row ids
};

// The members of a group, and which of its devices are lost. Immutable except for the latter;
// thread-safe.
class GroupState {
 public:
  // `routing` is null for replicas. Queries which devices can access each other's memory.
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
  // Whether kernels on `source` can read and write the member's memory.
  bool Reaches(int source, size_t member) const;

  bool IsLost(size_t member) const { return lost_[member].load(std::memory_order_relaxed); }
  void SetLost(size_t member) { lost_[member].store(true, std::memory_order_relaxed); }
  size_t LostMembers() const;
  // A member that is not lost, preferably on `device`; nullopt if all members are lost.
  std::optional<size_t> LivingMember(std::optional<int> device) const;

  // The member's fallback on the CPU. Errors: Unavailable, naming the member, if there is none.
  absl::StatusOr<const OrderedIndex*> FallbackOf(size_t member) const;
  // The same for all entries, given as `run` if they are in one run.
  absl::StatusOr<const OrderedIndex*> FallbackOfAll(const std::optional<SortedRun>& run) const;

  // A context for a batch on `source`. Must be given back only if nothing failed.
  absl::StatusOr<std::unique_ptr<GroupContext>> TakeContext(int source) const;
  void GiveBack(std::unique_ptr<GroupContext> context) const;

  // Executes point queries in the memory of `source`, a device of the group, after all work
  // enqueued so far on `after`, a stream of that device. Waits. If a member is lost during the
  // call, it is marked as lost and the batch is executed again.
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
  std::vector<std::vector<bool>> reaches_;  // [first member on the source's device][member]
  std::unique_ptr<std::atomic<bool>[]> lost_;
  std::unique_ptr<Fallback[]> fallbacks_;  // one per member, then the one for all entries
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<GroupContext>> idle_ ABSL_GUARDED_BY(mutex_);
};

// The result of an attempt: if it failed because of a member, `member` is its number.
struct GroupOutcome {
  absl::Status status;
  std::optional<size_t> member;
};

// One attempt with the members that are not lost. Nothing is in flight afterwards.
GroupOutcome AnswerFromShards(const GroupState& group, const PointQuery& query,
                              GroupContext& context, cudaStream_t after);
GroupOutcome AnswerFromReplicas(const GroupState& group, const PointQuery& query,
                                GroupContext& context, cudaStream_t after);

}  // namespace cairn::gpu
