#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device/group.h"
#include "gpu/group/point_query.h"

// A chunk of queries on its way to the shards and back, on the batch's own device. Each block takes
// a tile of queries to shared memory, in the order of their shards, and writes the part of each
// shard behind what other tiles have written there; it notes where that is, and of each query its
// place in the tile. So the way back reads the answers of each part in order and writes them in the
// caller's: no access is random, nothing is sorted, and answers need not say whose they are.
namespace cairn::gpu {

// Queries of a tile.
inline constexpr uint32_t kTileQueries = 4096;
inline constexpr uint32_t TilesOf(uint32_t queries) {
  return (queries + kTileQueries - 1) / kTileQueries;
}

// A key is of shard s if `s` of the bounds, which ascend, are at most the key.
template <typename Key>
struct ShardBounds {
  int size = 0;  // less than the number of shards; what is behind has no key
  Key bounds[kMaxGroupMembers - 1] = {};
};

// An array for each shard; the peer's memory if the device reaches it.
struct ShardArrays {
  void* of[kMaxGroupMembers] = {};
};

// What is added to the answers of each shard: the positions before it, or its number in wide rows.
struct ShardOffsets {
  uint64_t of[kMaxGroupMembers] = {};
};

// A tile's part of a shard: where it begins in the shard's array, and in the tile, where it ends
// with the next shard's.
struct TilePart {
  uint32_t base;
  uint16_t offset;
};

// What stays on the batch's device between both ways of a chunk.
struct PartitionNotes {
  uint16_t* places = nullptr;  // of each query in its tile
  TilePart* parts = nullptr;   // [tiles][shards]
  uint32_t* counts = nullptr;  // of each shard's queries; zero before the way there
};

// The way there: keys[0 … size) to the arrays of their shards. Enqueued on `stream`, of the current
// device. Key is uint32_t or uint64_t.
template <typename Key>
absl::Status EnqueuePartition(const Key* keys, uint32_t size, const ShardBounds<Key>& bounds,
                              int shards, const ShardArrays& to, const PartitionNotes& notes,
                              cudaStream_t stream);

// The way back: answers as a DeviceIndex gives them, in the order of each shard's array, to their
// places from `to` on.
absl::Status EnqueueReturn(Operation operation, const ShardArrays& answers, uint32_t size,
                           int shards, const ShardOffsets& offsets, const PartitionNotes& notes,
                           const AnswerColumn& to, cudaStream_t stream);

// Answers that are in order already, to a column that is wide.
absl::Status EnqueueWiden(const void* answers, size_t size, uint64_t offset, const AnswerColumn& to,
                          cudaStream_t stream);

// The same value for all answers, at wide places.
absl::Status EnqueueConstant(uint64_t value, size_t size, const AnswerColumn& to,
                             cudaStream_t stream);

}  // namespace cairn::gpu
