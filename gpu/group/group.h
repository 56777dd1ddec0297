#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/device/group.h"
#include "gpu/group/group_context.h"
#include "gpu/group/point_query.h"
#include "gpu/group/shard_cuts.h"
#include "index/machine/mutex.h"

namespace cairn::gpu {

class HostGroup;

// A member of a group: a replica or a shard.
struct GroupMember {
  std::unique_ptr<const DeviceIndex> index;
  std::optional<SortedRun> run;  // the member's entries, if they are in host memory
  uint64_t first_position = 0;   // of the member's first entry among the group's
  uint64_t row_offset = 0;       // added to the member's row ids

  int device() const { return index->device(); }
};

// The parts that a group is made of.
struct GroupParts {
  std::vector<GroupMember> members;     // with `index` and `run`
  std::optional<ShardRouting> routing;  // of shards; null for replicas
  std::optional<SortedRun> run;         // all entries, if they are in one run
  bool global_rows = false;             // row ids contain the member's number
};

// The implementation of DeviceGroup. Immutable except for its lost members.
class Group final : public DeviceGroup {
 public:
  // Queries which devices can access each other's memory.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Create(GroupParts parts,
                                                             const DeviceGroupOptions& options);
  ~Group() override;

  PhysicalType kind() const override { return at(0).index->kind(); }
  uint64_t size() const override { return size_; }
  bool replicated() const override { return !parts_.routing.has_value(); }
  bool has_global_rows() const override { return parts_.global_rows; }
  size_t members() const override { return parts_.members.size(); }
  const DeviceIndex& member(size_t i) const override { return *at(i).index; }
  size_t lost_members() const override;
  std::string description() const override;
  uint64_t memory_bytes() const override;
  absl::Status Execute(const WideDeviceBatch& batch, DeviceStream stream) const override;
  absl::StatusOr<const DeviceIndex*> On(int device) const override;
  absl::Status Execute(const Batch& batch) const override;

  const GroupMember& at(size_t member) const { return parts_.members[member]; }
  const std::optional<SortedRun>& run() const { return parts_.run; }
  const DeviceGroupOptions& options() const { return options_; }
  // Requires shards.
  const ShardRouting& routing() const { return *parts_.routing; }

  // Whether kernels on `source` can read and write the member's memory.
  bool Reaches(int source, size_t member) const;

  bool IsLost(size_t member) const { return lost_[member].load(std::memory_order_relaxed); }
  void SetLost(size_t member) const { lost_[member].store(true, std::memory_order_relaxed); }
  // A member that is not lost, or nullopt.
  std::optional<size_t> LivingMember() const;

  // The member's fallback on the CPU. Errors: Unavailable, naming the member, if there is none.
  absl::StatusOr<const OrderedIndex*> FallbackOf(size_t member) const;
  // The same for all entries, if they are in one run.
  absl::StatusOr<const OrderedIndex*> FallbackOfAll() const;

  // Executes point queries in the memory of `source`, a device of the group, after all work
  // enqueued so far on `after`, a stream of that device. Waits. If a member is lost during the
  // call, it is marked as lost and the batch is executed again.
  absl::Status Execute(const PointQuery& query, int source, cudaStream_t after) const;

 private:
  struct Fallback {
    Mutex mutex;
    bool made ABSL_GUARDED_BY(mutex) = false;
    absl::Status status ABSL_GUARDED_BY(mutex);
    std::unique_ptr<OrderedIndex> index ABSL_GUARDED_BY(mutex);
  };

  Group(GroupParts parts, const DeviceGroupOptions& options);
  absl::Status FindPeers();
  absl::StatusOr<const OrderedIndex*> MakeOnce(const std::optional<SortedRun>& run,
                                               const std::string& name, Fallback& fallback) const;
  // A context for a batch on `source`. Must be given back only if nothing failed.
  absl::StatusOr<std::unique_ptr<GroupContext>> TakeContext(int source) const;
  void GiveBack(std::unique_ptr<GroupContext> context) const;

  GroupParts parts_;
  DeviceGroupOptions options_;
  uint64_t size_ = 0;
  std::vector<std::vector<bool>> reaches_;  // [first member on the source's device][member]
  const std::unique_ptr<std::atomic<bool>[]> lost_;
  const std::unique_ptr<Fallback[]> fallbacks_;  // one per member, then the one for all entries
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<GroupContext>> idle_ ABSL_GUARDED_BY(mutex_);
  // The group as an index of each of its devices; none if row ids or positions need 64 bits.
  std::map<int, std::unique_ptr<const DeviceIndex>> views_;
  std::unique_ptr<const HostGroup> host_;
};

// The result of an attempt: if it failed because of a member, `member` is its number.
struct GroupOutcome {
  absl::Status status;
  std::optional<size_t> member;
};

// One attempt to execute point queries with the members that are not lost. Nothing is in flight
// afterwards.
GroupOutcome TryPoints(const Group& group, const PointQuery& query, GroupContext& context,
                       cudaStream_t after);

}  // namespace cairn::gpu
