#include "gpu/group/query_partition.h"

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"

namespace cairn::gpu {
namespace {

// On an H100, partitioning 2^27 queries of 32 bits to four shards in chunks of 2^23 takes 0.81 ms
// with 512 threads, 0.94 ms with 256 or 1,024. On the way back, concurrent with searches, blocks of
// 512 threads are scheduled sooner than smaller ones: 7.1 ms in total with 2^26 entries per shard;
// 8.8 ms with 256 threads on the way back.
constexpr int kPartitionThreads = 512;
constexpr int kTileItems = kTileQueries / kPartitionThreads;
constexpr int kWarpLanes = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFF;

template <typename Key>
__device__ unsigned ShardOfKey(const ShardBounds<Key>& bounds, Key key) {
  unsigned shard = 0;
  for (int i = 0; i < bounds.size; ++i) shard += bounds.bounds[i] <= key ? 1 : 0;
  return shard;
}

// The lanes of the warp, among those in `active`, that have the same `shard` as this lane.
__device__ inline unsigned PeersOf(unsigned shard, int shard_bits, unsigned active) {
  unsigned peers = active;
  for (int bit = 0; bit < shard_bits; ++bit) {
    const bool set = (shard >> bit & 1) != 0;
    const unsigned vote = __ballot_sync(kAllLanes, set);
    peers &= set ? vote : ~vote;
  }
  return peers;
}

// One block per tile.
template <typename Key>
__global__ void __launch_bounds__(kPartitionThreads)
    PartitionTile(const Key* __restrict__ keys, uint32_t size, ShardBounds<Key> bounds, int shards,
                  int shard_bits, ShardArrays to, PartitionNotes notes) {
  __shared__ Key ordered[kTileQueries];
  __shared__ uint32_t counts[kMaxGroupMembers];
  __shared__ uint32_t offsets[kMaxGroupMembers];
  __shared__ uint32_t bases[kMaxGroupMembers];
  const unsigned thread = threadIdx.x, lane = thread % kWarpLanes;
  const uint32_t first = blockIdx.x * kTileQueries;
  const uint32_t queries = min(kTileQueries, size - first);
  if (thread < shards) counts[thread] = 0;
  Key key[kTileItems];
#pragma unroll
  for (int j = 0; j < kTileItems; ++j) {
    const uint32_t i = j * kPartitionThreads + thread;
    key[j] = i < queries ? keys[first + i] : Key{0};
  }
  __syncthreads();
  // Upper half: the shard; lower half: the position within the tile's part for that shard.
  uint32_t place[kTileItems];
#pragma unroll
  for (int j = 0; j < kTileItems; ++j) {
    const bool there = j * kPartitionThreads + thread < queries;
    const unsigned shard = ShardOfKey(bounds, key[j]);
    const unsigned active = __ballot_sync(kAllLanes, there);
    const unsigned peers = PeersOf(shard, shard_bits, active);
    const int leader = there ? __ffs(static_cast<int>(peers)) - 1 : static_cast<int>(lane);
    uint32_t base = 0;
    if (there && static_cast<int>(lane) == leader) base = atomicAdd(&counts[shard], __popc(peers));
    base = __shfl_sync(kAllLanes, base, leader);
    place[j] = shard << 16 | (base + __popc(peers & ((1u << lane) - 1)));
  }
  __syncthreads();
  if (thread < shards) {
    uint32_t offset = 0;
    for (unsigned s = 0; s < thread; ++s) offset += counts[s];
    const uint32_t count = counts[thread];
    const uint32_t base = count > 0 ? atomicAdd(&notes.counts[thread], count) : 0;
    offsets[thread] = offset;
    bases[thread] = base;
    notes.parts[size_t{blockIdx.x} * shards + thread] = {base, static_cast<uint16_t>(offset)};
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kTileItems; ++j) {
    const uint32_t i = j * kPartitionThreads + thread;
    if (i < queries) {
      const uint32_t at = offsets[place[j] >> 16] + (place[j] & 0xFFFF);
      ordered[at] = key[j];
      notes.places[first + i] = static_cast<uint16_t>(at);
    }
  }
  __syncthreads();
  for (int s = 0; s < shards; ++s) {
    Key* const part = static_cast<Key*>(to.of[s]) + bases[s];
    const uint32_t offset = offsets[s], count = counts[s];
    for (uint32_t i = thread; i < count; i += kPartitionThreads) part[i] = ordered[offset + i];
  }
}

// kNoRow stays "no row" in the wide form.
template <typename Wide>
__device__ Wide WithOffset(uint32_t answer, uint64_t offset) {
  return answer == kNoRow ? static_cast<Wide>(kNoGlobalRow) : static_cast<Wide>(offset + answer);
}
template <typename Wide>
__device__ Wide WithOffset(bool answer, uint64_t) {
  return answer;
}

// Where and how to write the results.
template <typename Wide>
struct Places {
  Wide* data;
  Finish finish;
  const uint64_t* begin;

  __device__ void Put(size_t i, Wide value) const {
    if constexpr (sizeof(Wide) == sizeof(uint64_t)) {
      if (finish == Finish::kAtLeast) value = max(value, begin[i]);
      if (finish == Finish::kSubtract) value = max(value, begin[i]) - begin[i];
    }
    data[i] = value;
  }
};

template <typename Wide>
Places<Wide> PlacesIn(const AnswerColumn& column) {
  return {static_cast<Wide*>(column.data), column.finish, column.begin};
}

template <typename Answer, typename Wide>
__global__ void __launch_bounds__(kPartitionThreads)
    ReturnTile(ShardArrays answers, uint32_t size, int shards, ShardOffsets offsets,
               PartitionNotes notes, Places<Wide> to) {
  __shared__ Wide ordered[kTileQueries];
  __shared__ TilePart parts[kMaxGroupMembers];
  const unsigned thread = threadIdx.x;
  const uint32_t first = blockIdx.x * kTileQueries;
  const uint32_t queries = min(kTileQueries, size - first);
  if (thread < shards) parts[thread] = notes.parts[size_t{blockIdx.x} * shards + thread];
  __syncthreads();
  // All loads of a thread are in flight together, because a load from a peer takes a microsecond.
  Answer answer[kTileItems];
  int shard[kTileItems];
#pragma unroll
  for (int j = 0; j < kTileItems; ++j) {
    const uint32_t i = j * kPartitionThreads + thread;
    shard[j] = 0;
    for (int s = 1; s < shards; ++s) shard[j] += parts[s].offset <= i ? 1 : 0;
    const TilePart part = parts[shard[j]];
    if (i < queries) {
      answer[j] = static_cast<const Answer*>(answers.of[shard[j]])[part.base + (i - part.offset)];
    }
  }
#pragma unroll
  for (int j = 0; j < kTileItems; ++j) {
    const uint32_t i = j * kPartitionThreads + thread;
    if (i < queries) ordered[i] = WithOffset<Wide>(answer[j], offsets.of[shard[j]]);
  }
  __syncthreads();
#pragma unroll 4
  for (uint32_t i = thread; i < queries; i += kPartitionThreads) {
    to.Put(first + i, ordered[notes.places[first + i]]);
  }
}

__global__ void Widen(const uint32_t* answers, size_t size, uint64_t offset, Places<uint64_t> to) {
  ForEachIndex(size, [=](size_t i) { to.Put(i, WithOffset<uint64_t>(answers[i], offset)); });
}

__global__ void PutConstant(uint64_t value, size_t size, Places<uint64_t> to) {
  ForEachIndex(size, [=](size_t i) { to.Put(i, value); });
}

LaunchShape TileShape(uint32_t size) {
  return {TilesOf(size), kPartitionThreads};
}

int BitsOf(int shards) {
  int bits = 0;
  while (1 << bits < shards) ++bits;
  return bits;
}

template <typename Answer, typename Wide>
absl::Status ReturnAs(const ShardArrays& answers, uint32_t size, int shards,
                      const ShardOffsets& offsets, const PartitionNotes& notes,
                      const AnswerColumn& to, cudaStream_t stream) {
  CAIRN_RETURN_IF_LAUNCH_FAILS("ReturnTile", TileShape(size), stream, ReturnTile<Answer, Wide>,
                               answers, size, shards, offsets, notes, PlacesIn<Wide>(to));
  return absl::OkStatus();
}

}  // namespace

template <typename Key>
absl::Status EnqueuePartition(const Key* keys, uint32_t size, const ShardBounds<Key>& bounds,
                              int shards, const ShardArrays& to, const PartitionNotes& notes,
                              cudaStream_t stream) {
  CAIRN_RETURN_IF_LAUNCH_FAILS("PartitionTile", TileShape(size), stream, PartitionTile<Key>, keys,
                               size, bounds, shards, BitsOf(shards), to, notes);
  return absl::OkStatus();
}
template absl::Status EnqueuePartition(const uint32_t*, uint32_t, const ShardBounds<uint32_t>&, int,
                                       const ShardArrays&, const PartitionNotes&, cudaStream_t);
template absl::Status EnqueuePartition(const uint64_t*, uint32_t, const ShardBounds<uint64_t>&, int,
                                       const ShardArrays&, const PartitionNotes&, cudaStream_t);

absl::Status EnqueueReturn(Operation operation, const ShardArrays& answers, uint32_t size,
                           int shards, const ShardOffsets& offsets, const PartitionNotes& notes,
                           const AnswerColumn& to, cudaStream_t stream) {
  if (operation == Operation::kContains) {
    return ReturnAs<bool, bool>(answers, size, shards, offsets, notes, to, stream);
  }
  return to.wide ? ReturnAs<uint32_t, uint64_t>(answers, size, shards, offsets, notes, to, stream)
                 : ReturnAs<uint32_t, uint32_t>(answers, size, shards, offsets, notes, to, stream);
}

absl::Status EnqueueWiden(const void* answers, size_t size, uint64_t offset, const AnswerColumn& to,
                          cudaStream_t stream) {
  CAIRN_RETURN_IF_LAUNCH_FAILS("Widen", SimpleShape(size), stream, Widen,
                               static_cast<const uint32_t*>(answers), size, offset,
                               PlacesIn<uint64_t>(to));
  return absl::OkStatus();
}

absl::Status EnqueueConstant(uint64_t value, size_t size, const AnswerColumn& to,
                             cudaStream_t stream) {
  CAIRN_RETURN_IF_LAUNCH_FAILS("PutConstant", SimpleShape(size), stream, PutConstant, value, size,
                               PlacesIn<uint64_t>(to));
  return absl::OkStatus();
}

}  // namespace cairn::gpu
