#include "gpu/group/shard_cuts.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"

namespace cairn::gpu {
namespace {

template <typename Key>
SortedRun PartOfRun(const SortedRun& run, size_t first, size_t count) {
  return SortedRun::Wrap(run.keys<Key>().subspan(first, count), run.row_ids().subspan(first, count),
                         std::make_shared<SortedRun>(run));
}

}  // namespace

size_t CutOf(size_t size, size_t parts, size_t i, size_t multiple) {
  if (i >= parts) return size;
  // Equal to size * i / parts, but cannot overflow.
  const size_t cut = size / parts * i + size % parts * i / parts;
  return cut / multiple * multiple;
}

std::vector<SortedRun> CutRun(const SortedRun& run, size_t parts) {
  constexpr size_t kLine = 16;
  std::vector<SortedRun> cut;
  for (size_t i = 0; i < parts; ++i) {
    const size_t first = CutOf(run.size(), parts, i, kLine);
    const size_t count = CutOf(run.size(), parts, i + 1, kLine) - first;
    cut.push_back(run.kind() == PhysicalType::kU32 ? PartOfRun<uint32_t>(run, first, count)
                                                   : PartOfRun<uint64_t>(run, first, count));
  }
  return cut;
}

ShardKeys KeysOf(const SortedRun& run) {
  if (run.empty()) return {};
  const bool small = run.kind() == PhysicalType::kU32;
  return {false, small ? run.u32().front() : run.u64().front(),
          small ? run.u32().back() : run.u64().back()};
}

absl::StatusOr<ShardRouting> RouteShards(absl::Span<const ShardKeys> shards, uint64_t greatest) {
  ShardRouting routing;
  const ShardKeys* before = nullptr;  // of the last shard that is not empty
  size_t pending = 0;  // number of empty shards, which begin where the next non-empty one does
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardKeys& shard = shards[i];
    if (shard.empty) {
      pending += i > 0 ? 1 : 0;
      continue;
    }
    if (shard.first > shard.last || (before != nullptr && shard.first < before->last)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("shard %d begins at key %d, before key %d where %s ends", i, shard.first,
                          before != nullptr ? before->last : shard.last,
                          before != nullptr ? "the one before it" : "it"));
    }
    const bool has_all = before == nullptr || before->last < shard.first;
    const size_t bounds = pending + (i > 0 ? 1 : 0);
    routing.last.insert(routing.last.end(), bounds, shard.first);
    // A key that an earlier shard also has belongs to that shard. No key is greater than
    // `greatest`.
    if (has_all || shard.first < greatest) {
      routing.first.insert(routing.first.end(), bounds, has_all ? shard.first : shard.first + 1);
    }
    pending = 0;
    before = &shard;
  }
  return routing;
}

}  // namespace cairn::gpu
