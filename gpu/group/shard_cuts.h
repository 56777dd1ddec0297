#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/sorted_run.h"

// How entries and queries are divided; host code only.
namespace cairn::gpu {

// Part i of `parts` equal parts of `size` elements is [cut i, cut i + 1). All cuts are multiples of
// `multiple`, except the last one.
size_t CutOf(size_t size, size_t parts, size_t i, size_t multiple);

// Cuts the run into `parts` parts of equal size, up to rounding to 16 entries, because the columns
// of a run start on cache lines. The parts share the run's memory. Keys are integers. Throws
// std::bad_alloc.
std::vector<SortedRun> CutRun(const SortedRun& run, size_t parts);

// The minimum and maximum key of a shard, unless it is empty.
struct ShardKeys {
  bool empty = true;
  uint64_t first = 0;
  uint64_t last = 0;
};
ShardKeys KeysOf(const SortedRun& run);

// Maps a key to a shard: its number is the number of bounds that are at most the key. Bounds
// ascend, and there are fewer bounds than shards.
struct ShardRouting {
  // For kFindFirst, kContains and kLowerBound: the shard with the key's first entry. All entries of
  // earlier shards have lesser keys, and no entry of later shards has a lesser key.
  std::vector<uint64_t> first;
  // For kUpperBound: earlier shards have no greater keys, and later shards have only greater keys.
  std::vector<uint64_t> last;
};
// `greatest` is the maximum value of the key type. Errors: InvalidArgument, naming the shard, if a
// shard's keys are less than those of the shard before it.
absl::StatusOr<ShardRouting> RouteShards(absl::Span<const ShardKeys> shards, uint64_t greatest);

}  // namespace cairn::gpu
