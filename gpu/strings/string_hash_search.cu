#include <algorithm>

#include "gpu/layout/string_hash_units.h"
#include "gpu/runtime/launch.h"
#include "gpu/strings/string_hash.h"
#include "gpu/strings/string_query.cuh"
#include "index/machine/status_macros.h"
#include "index/strings/pilot_table.h"

namespace cairn::gpu {
namespace {

// Queries of a group that are in flight and wait for memory together. A single long query already
// has enough reads in flight.
constexpr int QueriesInFlight(int chunks) {
  return chunks == kFewChunks ? 2 : 1;
}

// The hash of a query. Called by a warp; the same in all lanes of a group.
template <int kChunks>
__device__ uint64_t HashOf(const StringQuery& query, const QueryUnits<kChunks>& units, int lane,
                           uint64_t seed) {
  uint64_t sum = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const uint32_t j = static_cast<uint32_t>(c * kGroupLanes + lane);
    const uint64_t part = HashUnit(units.units[c], j - 1, seed);
    sum += j > 0 && j < units.size ? part : 0;
  }
  for (uint32_t j = kChunks * kGroupLanes + static_cast<uint32_t>(lane); j < units.size;
       j += kGroupLanes) {
    sum += HashUnit(query.Unit(j - 1), j - 1, seed);
  }
  __syncwarp();
  sum += __shfl_xor_sync(kAllLanes, sum, 1, kGroupLanes);
  sum += __shfl_xor_sync(kAllLanes, sum, 2, kGroupLanes);
  return FinishHash(sum, query.length);
}

// A group takes kQueries consecutive queries.
template <int kChunks>
__global__ void __launch_bounds__(kStringThreads)
    FindByHash(StringHashView hash, StringQueries batch) {
  constexpr int kQueries = QueriesInFlight(kChunks);
  const int lane = threadIdx.x % kGroupLanes;
  const int shift = threadIdx.x % 32 / kGroupLanes * kGroupLanes;
  const uint32_t first = (blockIdx.x * kStringThreads + threadIdx.x) / kGroupLanes * kQueries;
  if (first - shift / kGroupLanes * kQueries >= batch.size) return;  // true for the whole warp

  StringQuery queries[kQueries];
  uint64_t hashes[kQueries];
  uint32_t buckets[kQueries];
  const uint64_t* records[kQueries];
  const auto for_each = [](auto body) {
#pragma unroll
    for (int q = 0; q < kQueries; ++q) body(q);
  };
  for_each([&](int q) { queries[q] = batch.At(batch.ExtentOf(first + q), 0); });
  for_each([&](int q) {
    const QueryUnits<kChunks> units(queries[q], lane);
    hashes[q] = HashOf(queries[q], units, lane, hash.seed);
    buckets[q] = static_cast<uint32_t>((hashes[q] >> 32) * hash.buckets >> 32);
  });
  uint8_t pilots[kQueries];
  for_each([&](int q) { pilots[q] = __ldg(hash.pilots + buckets[q]); });
  uint32_t slots[kQueries];
  for_each([&](int q) {
    const size_t slot = size_t{buckets[q] / PilotTable::kBucketsAPart} * hash.part_slots +
                        PilotTable::SlotInPart(hashes[q], pilots[q], hash.part_slots);
    slots[q] = __ldg(hash.slots + slot);
  });
  for_each([&](int q) { records[q] = hash.records.units + slots[q]; });
  for_each([&](int q) {
    const QueryUnits<kChunks> units(queries[q], lane);
    const RecordUnits<kChunks, RecordLoad::kStays> key(records[q], units.size, lane);
    const bool found = IsQuery(queries[q], units, records[q], key, lane, shift);
    const uint32_t i = first + q;
    if (lane == 0 && i < batch.size) batch.Write(i, found, static_cast<RowId>(key.units[0]));
  });
}

template <int kChunks>
absl::Status Search(const StringHashView& hash, const StringQueries& batch, cudaStream_t stream) {
  constexpr unsigned kQueriesInBlock = kStringThreads / kGroupLanes * QueriesInFlight(kChunks);
  const LaunchShape shape = {(batch.size + kQueriesInBlock - 1) / kQueriesInBlock, kStringThreads};
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindByHash", shape, stream, FindByHash<kChunks>, hash, batch);
  return absl::OkStatus();
}

}  // namespace

absl::Status SearchStringHash(const StringHashView& hash, StringAnswer answer, DeviceKeys keys,
                              void* results, cudaStream_t stream) {
  return SearchInParts(keys, answer, results, nullptr, [&](const StringQueries& batch) {
    return hash.longest <= kFewChunkBytes ? Search<kFewChunks>(hash, batch, stream)
                                          : Search<kMaxChunks>(hash, batch, stream);
  });
}

}  // namespace cairn::gpu
