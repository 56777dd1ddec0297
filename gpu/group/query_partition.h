#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device/group.h"
#include "gpu/group/point_query.h"

// Distributes a chunk of queries to the shards and brings the results back, on the batch's own
// device. Each block loads a tile of queries to shared memory and groups them by shard. It appends
// the queries of each shard to those that other tiles have written for it. It records where they
// are, and the position of each query within the tile. On the way back, each part's results are
// read sequentially and written in the caller's order. So there are no random accesses, nothing is
// sorted, and results need no query numbers.
namespace cairn::gpu {

// Queries per tile.
inline constexpr uint32_t kTileQueries = 4096;
inline constexpr uint32_t TilesOf(uint32_t queries) {
  return (queries + kTileQueries - 1) / kTileQueries;
}

// A key belongs to shard s if exactly `s` of the ascending bounds are at most the key.
template <typename Key>
struct ShardBounds {
  int size = 0;  // less than the number of shards; shards after that have no keys
  Key bounds[kMaxGroupMembers - 1] = {};
};

// One array per shard, in the peer's memory if the device can access it.
struct ShardArrays {
  void* of[kMaxGroupMembers] = {};
};

// Added to each shard's results: the number of positions before it, or its number in global row
// ids.
struct ShardOffsets {
  uint64_t of[kMaxGroupMembers] = {};
};

// A tile's part for one shard: where it begins in the shard's array and in the tile. In the tile,
// it ends where the next shard's part begins.
struct TilePart {
  uint32_t base;
  uint16_t offset;
};

// Data that stays on the batch's device between the two directions of a chunk.
struct PartitionNotes {
  uint16_t* places = nullptr;  // position of each query in its tile
  TilePart* parts = nullptr;   // [tiles][shards]
  uint32_t* counts = nullptr;  // number of queries of each shard; must be zero before partitioning
};

// Partitions keys[0 … size) into the arrays of their shards. Enqueued on `stream` of the current
// device. Key is uint32_t or uint64_t.
template <typename Key>
absl::Status EnqueuePartition(const Key* keys, uint32_t size, const ShardBounds<Key>& bounds,
                              int shards, const ShardArrays& to, const PartitionNotes& notes,
                              cudaStream_t stream);

// Writes results, as a DeviceIndex returns them and in the order of each shard's array, to their
// positions in `to`.
absl::Status EnqueueReturn(Operation operation, const ShardArrays& answers, uint32_t size,
                           int shards, const ShardOffsets& offsets, const PartitionNotes& notes,
                           const AnswerColumn& to, cudaStream_t stream);

// Copies results that already are in the caller's order to a wide column.
absl::Status EnqueueWiden(const void* answers, size_t size, uint64_t offset, const AnswerColumn& to,
                          cudaStream_t stream);

// Writes the same value for all results, to a wide column.
absl::Status EnqueueConstant(uint64_t value, size_t size, const AnswerColumn& to,
                             cudaStream_t stream);

}  // namespace cairn::gpu
