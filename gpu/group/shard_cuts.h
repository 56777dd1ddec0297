#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/sorted_run.h"

// How entries and queries are divided, on the host alone.
namespace cairn::gpu {

// Part i of `parts` equal ones of `size` elements is [cut i, cut i + 1); cuts are multiples of
// `multiple`, but the last.
size_t CutOf(size_t size, size_t parts, size_t i, size_t multiple);

// The run in so many parts of equal sizes, to 16 entries, as whole cache lines begin a run's
// columns. They share its memory. Keys are numbers. Throws std::bad_alloc.
std::vector<SortedRun> CutRun(const SortedRun& run, size_t parts);

// The least and the greatest key of each shard; an empty one has none.
struct ShardKeys {
  bool empty = true;
  uint64_t first = 0;
  uint64_t last = 0;
};
ShardKeys KeysOf(const SortedRun& run);

// Which shard is asked for a key: as many bounds as are at most the key. Bounds ascend, and there
// are fewer than shards.
struct ShardRouting {
  // The shard with the key's first entry: of kFindFirst, kContains and kLowerBound, all entries of
  // shards before it have lesser keys, and all behind it none that are lesser.
  std::vector<uint64_t> first;
  // The same of kUpperBound: shards before it have no greater keys, those behind it greater ones
  // alone.
  std::vector<uint64_t> last;
};
// `greatest` is the greatest key of the kind. InvalidArgument, naming the shard, where a shard's
// keys are not at least those of the one before.
absl::StatusOr<ShardRouting> RouteShards(absl::Span<const ShardKeys> shards, uint64_t greatest);

}  // namespace cairn::gpu
