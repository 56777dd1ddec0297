#include "cairn/device/group.h"

#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/group/group.h"
#include "gpu/group/shard_cuts.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using gpu::GroupParts;
using gpu::ShardKeys;

using MadeDeviceGroup = absl::StatusOr<std::unique_ptr<DeviceGroup>>;

absl::Status GroupError(const std::string& what) {
  return absl::InvalidArgumentError("device group: " + what);
}

// Makes a group of the parts that fill(&parts) sets, which are of `members` members.
template <typename Fill>
MadeDeviceGroup MakeDeviceGroup(size_t members, const DeviceGroupOptions& options, Fill fill) {
  return Guarded("making a device group", [&]() -> MadeDeviceGroup {
    if (members < 1 || members > kMaxGroupMembers) {
      return GroupError(
          absl::StrFormat("got %d members, expected 1 to %d", members, kMaxGroupMembers));
    }
    constexpr size_t kMaxChunk = size_t{1} << 30;
    if (options.chunk_queries > kMaxChunk) {
      return GroupError(absl::StrFormat("chunk_queries: got %d, expected at most %d",
                                        options.chunk_queries, kMaxChunk));
    }
    GroupParts parts;
    RETURN_IF_ERROR(fill(&parts));
    return gpu::Group::Create(std::move(parts), options);
  });
}

absl::Status CheckShardable(PhysicalType kind) {
  if (kind != PhysicalType::kBytes) return absl::OkStatus();
  return absl::UnimplementedError("device group: byte-string keys cannot be sharded; use replicas");
}

// Builds a member of each run, on its device.
absl::Status BuildMembers(std::string_view factory, std::vector<SortedRun> runs,
                          absl::Span<const int> devices, GroupParts* parts) {
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSIGN_OR_RETURN(auto index, MakeDeviceIndex(factory, runs[i], devices[i]));
    parts->members.push_back({std::move(index), std::move(runs[i])});
  }
  return absl::OkStatus();
}

// Checks shards and routes keys to them; keys_of(i) returns the keys of shard i, of type
// kind_of(i).
template <typename KindOf, typename KeysOf>
absl::Status RouteToShards(size_t shards, KindOf kind_of, KeysOf keys_of, GroupParts* parts) {
  const PhysicalType kind = kind_of(0);
  RETURN_IF_ERROR(CheckShardable(kind));
  std::vector<ShardKeys> keys;
  for (size_t i = 0; i < shards; ++i) {
    if (kind_of(i) != kind) {
      return GroupError(absl::StrFormat("shard 0 has %s keys, shard %d %s", PhysicalTypeName(kind),
                                        i, PhysicalTypeName(kind_of(i))));
    }
    ASSIGN_OR_RETURN(keys.emplace_back(), keys_of(i));
  }
  ASSIGN_OR_RETURN(
      parts->routing,
      gpu::RouteShards(keys, kind == PhysicalType::kU32 ? std::numeric_limits<uint32_t>::max()
                                                        : std::numeric_limits<uint64_t>::max()));
  return absl::OkStatus();
}

absl::Status BuildShards(std::string_view factory, std::vector<SortedRun> shards,
                         absl::Span<const int> devices, GroupParts* parts) {
  RETURN_IF_ERROR(RouteToShards(
      shards.size(), [&](size_t i) { return shards[i].kind(); },
      [&](size_t i) -> absl::StatusOr<ShardKeys> { return gpu::KeysOf(shards[i]); }, parts));
  return BuildMembers(factory, std::move(shards), devices, parts);
}

// Finds the minimum and maximum keys of an index: for entry e, the greatest key whose lower bound
// is at most e. Each round finds the next 8 bits of both.
template <typename Key>
absl::StatusOr<ShardKeys> FindShardKeys(const DeviceIndex& index) {
  if (index.size() == 0) return ShardKeys();
  constexpr size_t kDigits = 256;
  const gpu::OnDevice on_device(index.device());
  ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::Stream::Create());
  ASSIGN_OR_RETURN(const auto found,
                   gpu::DeviceBuffer<Position>::Allocate(2 * kDigits, stream.get()));
  std::vector<Key> asked(2 * kDigits);
  std::vector<Position> bounds(2 * kDigits);
  gpu::DeviceBuffer<Key> keys;
  const Position entries[] = {0, static_cast<Position>(index.size() - 1)};
  Key ends[] = {0, 0};
  for (int shift = 8 * sizeof(Key) - 8; shift >= 0; shift -= 8) {
    for (size_t i = 0; i < asked.size(); ++i) {
      asked[i] = ends[i / kDigits] | static_cast<Key>(i % kDigits) << shift;
    }
    RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(asked), &keys, stream.get()));
    RETURN_IF_ERROR(
        index.Execute(DeviceBatch::LowerBound(DeviceKeys(keys.data(), asked.size()), found.data()),
                      stream.get()));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(bounds.data(), found.data(), found.bytes(),
                                               cudaMemcpyDeviceToHost, stream.get()));
    RETURN_IF_ERROR(stream.Wait());
    for (size_t i = 0; i < asked.size(); ++i) {
      if (bounds[i] <= entries[i / kDigits]) ends[i / kDigits] = asked[i];
    }
  }
  return ShardKeys{false, ends[0], ends[1]};
}

}  // namespace

MadeDeviceGroup DeviceGroup::Replicate(std::string_view factory, SortedRun run,
                                       absl::Span<const int> devices,
                                       const DeviceGroupOptions& options) {
  return MakeDeviceGroup(devices.size(), options, [&](GroupParts* parts) {
    parts->run = run;
    return BuildMembers(factory, std::vector<SortedRun>(devices.size(), run), devices, parts);
  });
}

MadeDeviceGroup DeviceGroup::Shard(std::string_view factory, SortedRun run,
                                   absl::Span<const int> devices,
                                   const DeviceGroupOptions& options) {
  return MakeDeviceGroup(devices.size(), options, [&](GroupParts* parts) -> absl::Status {
    RETURN_IF_ERROR(CheckShardable(run.kind()));
    parts->run = run;
    return BuildShards(factory, gpu::CutRun(run, devices.size()), devices, parts);
  });
}

MadeDeviceGroup DeviceGroup::OfShards(std::string_view factory, std::vector<SortedRun> shards,
                                      absl::Span<const int> devices,
                                      const DeviceGroupOptions& options) {
  return MakeDeviceGroup(shards.size(), options, [&](GroupParts* parts) {
    if (shards.size() != devices.size()) {
      return GroupError(
          absl::StrFormat("%d shards, but %d devices", shards.size(), devices.size()));
    }
    parts->global_rows = true;
    return BuildShards(factory, std::move(shards), devices, parts);
  });
}

MadeDeviceGroup DeviceGroup::OfReplicas(std::vector<std::unique_ptr<const DeviceIndex>> replicas,
                                        const DeviceGroupOptions& options) {
  return MakeDeviceGroup(replicas.size(), options, [&](GroupParts* parts) {
    const PhysicalType kind = replicas.front()->kind();
    const size_t size = replicas.front()->size();
    for (std::unique_ptr<const DeviceIndex>& replica : replicas) {
      if (replica->kind() != kind || replica->size() != size) {
        return GroupError(absl::StrFormat("replica 0 has %d %s keys, replica %d %d %s keys", size,
                                          PhysicalTypeName(kind), parts->members.size(),
                                          replica->size(), PhysicalTypeName(replica->kind())));
      }
      parts->members.push_back({std::move(replica), std::nullopt});
    }
    return absl::OkStatus();
  });
}

MadeDeviceGroup DeviceGroup::OfShards(std::vector<std::unique_ptr<const DeviceIndex>> shards,
                                      const DeviceGroupOptions& options) {
  return MakeDeviceGroup(shards.size(), options, [&](GroupParts* parts) -> absl::Status {
    parts->global_rows = true;
    RETURN_IF_ERROR(RouteToShards(
        shards.size(), [&](size_t i) { return shards[i]->kind(); },
        [&](size_t i) {
          return shards[i]->kind() == PhysicalType::kU32 ? FindShardKeys<uint32_t>(*shards[i])
                                                         : FindShardKeys<uint64_t>(*shards[i]);
        },
        parts));
    for (std::unique_ptr<const DeviceIndex>& shard : shards) {
      parts->members.push_back({std::move(shard), std::nullopt});
    }
    return absl::OkStatus();
  });
}

}  // namespace cairn
