#include "cairn/device/group.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gpu/group/group_state.h"
#include "gpu/group/group_view.h"
#include "gpu/group/host_group.h"
#include "gpu/group/shard_cuts.h"
#include "gpu/group/wide_batch.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_check.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using gpu::GroupMember;
using gpu::GroupState;
using gpu::GroupView;
using gpu::ShardKeys;
using gpu::ShardRouting;

absl::Status GroupError(const std::string& what) {
  return absl::InvalidArgumentError("device group: " + what);
}

absl::Status CheckGroup(size_t members, const DeviceGroupOptions& options) {
  if (members < 1 || members > kMaxGroupMembers) {
    return GroupError(
        absl::StrFormat("got %d members, expected 1 to %d", members, kMaxGroupMembers));
  }
  constexpr size_t kMaxChunk = size_t{1} << 30;
  if (options.chunk_queries > kMaxChunk) {
    return GroupError(absl::StrFormat("chunk_queries: got %d, expected at most %d",
                                      options.chunk_queries, kMaxChunk));
  }
  return absl::OkStatus();
}

uint64_t GreatestKey(PhysicalType kind) {
  return kind == PhysicalType::kU32 ? std::numeric_limits<uint32_t>::max()
                                    : std::numeric_limits<uint64_t>::max();
}

absl::Status CheckNumbers(PhysicalType kind) {
  if (kind != PhysicalType::kBytes) return absl::OkStatus();
  return absl::UnimplementedError("device group: byte-string keys cannot be sharded; use replicas");
}

// The parts of a group. The index of members[i] is owned[i].
struct Parts {
  std::vector<std::unique_ptr<const DeviceIndex>> owned;
  std::vector<GroupMember> members;
  std::optional<ShardRouting> routing;
  std::optional<SortedRun> run;  // all entries, if they are in one run
  bool wide_rows = false;

  void Add(std::unique_ptr<const DeviceIndex> index, std::optional<SortedRun> run_of_member,
           uint64_t row_offset) {
    members.push_back({index->device(), index.get(), std::move(run_of_member), 0, row_offset});
    owned.push_back(std::move(index));
  }
};

// Builds an index of each run on its device. With parts->wide_rows, row ids contain the member's
// number.
absl::Status BuildMembers(std::string_view factory, const std::vector<SortedRun>& runs,
                          absl::Span<const int> devices, Parts* parts) {
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSIGN_OR_RETURN(auto index, MakeDeviceIndex(factory, runs[i], devices[i]));
    parts->Add(std::move(index), runs[i],
               parts->wide_rows ? MakeGlobalRowId(static_cast<uint32_t>(i), 0) : 0);
  }
  return absl::OkStatus();
}

// InvalidArgument unless the keys are the index's minimum and maximum.
absl::Status CheckShardKeys(const DeviceIndex& index, const ShardKeys& keys, size_t shard) {
  if (keys.empty) return absl::OkStatus();
  const gpu::OnDevice on_device(index.device());
  ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::Stream::Create());
  const uint64_t asked[] = {keys.first, keys.last};
  const uint32_t asked32[] = {static_cast<uint32_t>(keys.first), static_cast<uint32_t>(keys.last)};
  gpu::DeviceBuffer<uint64_t> keys64;
  gpu::DeviceBuffer<uint32_t> keys32;
  RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(asked), &keys64, stream.get()));
  RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(asked32), &keys32, stream.get()));
  ASSIGN_OR_RETURN(const auto found, gpu::DeviceBuffer<Position>::Allocate(4, stream.get()));
  const DeviceKeys batch = index.kind() == PhysicalType::kU32 ? DeviceKeys(keys32.data(), 2)
                                                              : DeviceKeys(keys64.data(), 2);
  RETURN_IF_ERROR(
      index.Execute(DeviceBatch::EqualRange(batch, found.data(), found.data() + 2), stream.get()));
  Position at[4] = {};
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(at, found.data(), sizeof at, cudaMemcpyDeviceToHost, stream.get()));
  RETURN_IF_ERROR(stream.Wait());
  const Position first = at[0], last = at[1], behind_first = at[2], behind_last = at[3];
  if (first == 0 && behind_first > 0 && behind_last == index.size() && last < index.size()) {
    return absl::OkStatus();
  }
  return GroupError(absl::StrFormat("shard %d: keys %d and %d are not its minimum and maximum",
                                    shard, keys.first, keys.last));
}

}  // namespace

// Executes a group's host batches and owns the group's indexes.
class DeviceGroup::Host {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Make(Parts parts,
                                                           const DeviceGroupOptions& options) {
    ASSIGN_OR_RETURN(auto state, GroupState::Create(std::move(parts.members),
                                                    std::move(parts.routing), options));
    std::unique_ptr<DeviceGroup> group(new DeviceGroup(std::move(state)));
    group->host_ = std::make_unique<Host>(*group->state_, std::move(parts.owned),
                                          std::move(parts.run), parts.wide_rows);
    return group;
  }

  Host(GroupState& state, std::vector<std::unique_ptr<const DeviceIndex>> owned,
       std::optional<SortedRun> run, bool wide_rows)
      : owned_(std::move(owned)),
        wide_rows_(wide_rows),
        has_views_(!wide_rows && state.size() <= kMaxEntries),
        batches_(state, std::move(run), wide_rows) {
    for (size_t i = 0; has_views_ && i < owned_.size(); ++i) {
      std::unique_ptr<const DeviceIndex>& view = views_[owned_[i]->device()];
      if (view == nullptr) {
        view = std::make_unique<GroupView>(state, i, GroupView::Asks::kAll);
      }
    }
  }

  bool wide_rows() const { return wide_rows_; }
  bool has_views() const { return has_views_; }
  const DeviceIndex* ViewOf(int device) const {
    const auto view = views_.find(device);
    return view == views_.end() ? nullptr : view->second.get();
  }
  const gpu::HostGroup& batches() const { return batches_; }

 private:
  const std::vector<std::unique_ptr<const DeviceIndex>> owned_;
  const bool wide_rows_, has_views_;
  std::map<int, std::unique_ptr<const DeviceIndex>> views_;
  const gpu::HostGroup batches_;
};

DeviceGroup::DeviceGroup(std::unique_ptr<GroupState> state) : state_(std::move(state)) {}
DeviceGroup::~DeviceGroup() = default;

absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::Replicate(
    std::string_view factory, SortedRun run, absl::Span<const int> devices,
    const DeviceGroupOptions& options) {
  using Made = absl::StatusOr<std::unique_ptr<DeviceGroup>>;
  return Guarded("making a device group", [&]() -> Made {
    RETURN_IF_ERROR(CheckGroup(devices.size(), options));
    Parts parts;
    RETURN_IF_ERROR(
        BuildMembers(factory, std::vector<SortedRun>(devices.size(), run), devices, &parts));
    parts.run = std::move(run);
    return Host::Make(std::move(parts), options);
  });
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::Shard(std::string_view factory,
                                                                SortedRun run,
                                                                absl::Span<const int> devices,
                                                                const DeviceGroupOptions& options) {
  using Made = absl::StatusOr<std::unique_ptr<DeviceGroup>>;
  return Guarded("making a device group", [&]() -> Made {
    RETURN_IF_ERROR(CheckGroup(devices.size(), options));
    RETURN_IF_ERROR(CheckNumbers(run.kind()));
    Parts parts;
    const std::vector<SortedRun> cut = gpu::CutRun(run, devices.size());
    std::vector<ShardKeys> keys;
    for (const SortedRun& part : cut) keys.push_back(gpu::KeysOf(part));
    ASSIGN_OR_RETURN(parts.routing, gpu::RouteShards(keys, GreatestKey(run.kind())));
    RETURN_IF_ERROR(BuildMembers(factory, cut, devices, &parts));
    parts.run = std::move(run);
    return Host::Make(std::move(parts), options);
  });
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfShards(
    std::string_view factory, std::vector<SortedRun> shards, absl::Span<const int> devices,
    const DeviceGroupOptions& options) {
  using Made = absl::StatusOr<std::unique_ptr<DeviceGroup>>;
  return Guarded("making a device group", [&]() -> Made {
    RETURN_IF_ERROR(CheckGroup(shards.size(), options));
    if (shards.size() != devices.size()) {
      return GroupError(
          absl::StrFormat("%d shards, but %d devices", shards.size(), devices.size()));
    }
    const PhysicalType kind = shards.front().kind();
    RETURN_IF_ERROR(CheckNumbers(kind));
    std::vector<ShardKeys> keys;
    for (const SortedRun& shard : shards) {
      if (shard.kind() != kind) {
        return GroupError(absl::StrFormat("shard 0 has %s keys, shard %d %s",
                                          PhysicalTypeName(kind), keys.size(),
                                          PhysicalTypeName(shard.kind())));
      }
      keys.push_back(gpu::KeysOf(shard));
    }
    Parts parts;
    parts.wide_rows = true;
    ASSIGN_OR_RETURN(parts.routing, gpu::RouteShards(keys, GreatestKey(kind)));
    RETURN_IF_ERROR(BuildMembers(factory, shards, devices, &parts));
    return Host::Make(std::move(parts), options);
  });
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfReplicas(
    std::vector<std::unique_ptr<const DeviceIndex>> replicas, const DeviceGroupOptions& options) {
  using Made = absl::StatusOr<std::unique_ptr<DeviceGroup>>;
  return Guarded("making a device group", [&]() -> Made {
    RETURN_IF_ERROR(CheckGroup(replicas.size(), options));
    const PhysicalType kind = replicas.front()->kind();
    const size_t size = replicas.front()->size();
    Parts parts;
    for (std::unique_ptr<const DeviceIndex>& replica : replicas) {
      if (replica->kind() != kind || replica->size() != size) {
        return GroupError(absl::StrFormat("replica 0 has %d %s keys, replica %d %d %s keys", size,
                                          PhysicalTypeName(kind), parts.members.size(),
                                          replica->size(), PhysicalTypeName(replica->kind())));
      }
      parts.Add(std::move(replica), std::nullopt, 0);
    }
    return Host::Make(std::move(parts), options);
  });
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::OfShards(
    std::vector<std::unique_ptr<const DeviceIndex>> shards, absl::Span<const uint64_t> first_keys,
    absl::Span<const uint64_t> last_keys, const DeviceGroupOptions& options) {
  using Made = absl::StatusOr<std::unique_ptr<DeviceGroup>>;
  return Guarded("making a device group", [&]() -> Made {
    RETURN_IF_ERROR(CheckGroup(shards.size(), options));
    if (first_keys.size() != shards.size() || last_keys.size() != shards.size()) {
      return GroupError(absl::StrFormat("%d shards, but %d first and %d last keys", shards.size(),
                                        first_keys.size(), last_keys.size()));
    }
    const PhysicalType kind = shards.front()->kind();
    RETURN_IF_ERROR(CheckNumbers(kind));
    Parts parts;
    parts.wide_rows = true;
    std::vector<ShardKeys> keys;
    for (size_t i = 0; i < shards.size(); ++i) {
      if (shards[i]->kind() != kind) {
        return GroupError(absl::StrFormat("shard 0 has %s keys, shard %d %s",
                                          PhysicalTypeName(kind), i,
                                          PhysicalTypeName(shards[i]->kind())));
      }
      keys.push_back({shards[i]->size() == 0, first_keys[i], last_keys[i]});
      RETURN_IF_ERROR(CheckShardKeys(*shards[i], keys.back(), i));
      parts.Add(std::move(shards[i]), std::nullopt, MakeGlobalRowId(static_cast<uint32_t>(i), 0));
    }
    ASSIGN_OR_RETURN(parts.routing, gpu::RouteShards(keys, GreatestKey(kind)));
    return Host::Make(std::move(parts), options);
  });
}

PhysicalType DeviceGroup::kind() const {
  return state_->kind();
}
uint64_t DeviceGroup::size() const {
  return state_->size();
}
bool DeviceGroup::replicated() const {
  return state_->replicated();
}
bool DeviceGroup::has_global_rows() const {
  return host_->wide_rows();
}
size_t DeviceGroup::members() const {
  return state_->members().size();
}
const DeviceIndex& DeviceGroup::member(size_t i) const {
  return *state_->members()[i].index;
}
size_t DeviceGroup::lost_members() const {
  return state_->LostMembers();
}

std::string DeviceGroup::description() const {
  std::vector<int> devices;
  for (const GroupMember& member : state_->members()) devices.push_back(member.device);
  return absl::StrFormat("%s %d x %s on devices %s", replicated() ? "replicated" : "sharded",
                         members(), member(0).description(), absl::StrJoin(devices, ", "));
}

uint64_t DeviceGroup::memory_bytes() const {
  uint64_t bytes = 0;
  for (const GroupMember& member : state_->members()) bytes += member.index->memory_bytes();
  return bytes;
}

absl::Status DeviceGroup::Execute(const WideDeviceBatch& batch, DeviceStream stream) const {
  return Guarded("executing a batch on a device group", [&]() -> absl::Status {
    RETURN_IF_ERROR(gpu::CheckNotCapturing("device group", "executing a batch", stream));
    ASSIGN_OR_RETURN(const int device, gpu::DeviceOfStream(stream));
    if (!state_->HasDevice(device)) {
      return GroupError(
          absl::StrFormat("the stream belongs to device %d, which is not in the group", device));
    }
    return gpu::AnswerWide(*state_, batch, device, stream);
  });
}

absl::StatusOr<const DeviceIndex*> DeviceGroup::On(int device) const {
  if (!host_->has_views()) {
    return absl::FailedPreconditionError(
        "device group: row ids or positions do not fit 32 bits; use WideDeviceBatch");
  }
  const DeviceIndex* const view = host_->ViewOf(device);
  if (view == nullptr) {
    return GroupError(absl::StrFormat("device %d is not in the group", device));
  }
  return view;
}

absl::Status DeviceGroup::Execute(const Batch& batch) const {
  return Guarded("executing a batch on a device group",
                 [&] { return host_->batches().Execute(batch); });
}

}  // namespace cairn
