// PointLookup/<index>/<key>/n:<log2 n>/<row_id, position, contains, find_all or
// find>[/<variant>]: a batch of 2^27 keys (find_all, in two steps, and find: 2^24), answers in the
// order of the keys, all in device memory. Without a variant, queries are random keys of the index,
// and its n keys are distinct and uniform. Variants:
//   miss, half_miss  all keys are absent, or every second one;
//   zipf             a few keys are frequent (theta 0.99);
//   sorted           queries in ascending order;
//   clustered        sixteen runs of consecutive keys;
//   runs             many runs of ten consecutive keys;
//   duplicates       sixteen entries per key;
//   near_unique      one of 128 entries repeats a key;
//   buffered, sort_based  by a strategy of cairn/device.h (gpu_batch_strategy.cc).
// <index> is a factory string, or
//   baseline:gpu_lower_bound  binary search in the sorted keys, one thread per query;
//   baseline:thrust           thrust::lower_bound of all queries; row ids by a second pass.
// ratio_to_limit is to random reads of 64 bytes in memory of the index's size, measured in the same
// process.
#include "tools/bench/gpu/gpu_point_lookup.h"

#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

#include <functional>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/gpu_limit.h"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

// Replaces each position by its row, if the key there is the query's.
template <typename Key>
__global__ void RowsAt(const Key* keys, const RowId* row_ids, size_t n, const Key* queries,
                       uint32_t* positions, size_t size) {
  ForEachIndex(size, [=](size_t i) {
    const size_t p = positions[i];
    positions[i] = p < n && keys[p] == queries[i] ? row_ids[p] : kNoRow;
  });
}

template <typename Key>
__global__ void BinarySearch(const Key* keys, const RowId* row_ids, size_t n, const Key* queries,
                             uint32_t* results, size_t size, bool rows) {
  ForEachIndex(size, [=](size_t i) {
    const Key query = queries[i];
    size_t p = 0;
    for (size_t left = n; left > 0;) {
      const size_t half = left / 2;
      const bool less = keys[p + half] < query;
      p = less ? p + half + 1 : p;
      left = less ? left - half - 1 : half;
    }
    results[i] = !rows ? static_cast<uint32_t>(p) : p < n && keys[p] == query ? row_ids[p] : kNoRow;
  });
}

// A way to answer with row ids or positions, and its memory.
template <typename Key>
struct Contender {
  std::function<absl::Status(const Key* keys, size_t size, void* results)> search;
  uint64_t bytes = 0;
};

template <typename Key>
absl::StatusOr<Contender<Key>> MakeBaseline(const DeviceLookup& lookup, const EntrySet<Key>& e,
                                            cudaStream_t stream) {
  const bool rows = lookup.answer == DeviceAnswer::kRowId;
  if (!rows && lookup.answer != DeviceAnswer::kPosition) {
    return absl::UnimplementedError("baselines give row ids and positions");
  }
  const Key* sorted = e.run.keys.data();
  const RowId* row_ids = e.run.row_ids.data();
  const size_t n = e.size();
  const uint64_t bytes = e.run.keys.bytes() + (rows ? e.run.row_ids.bytes() : 0);
  if (lookup.index == "baseline:gpu_lower_bound") {
    return Contender<Key>{[=](const Key* keys, size_t size, void* results) -> absl::Status {
                            BinarySearch<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(
                                sorted, row_ids, n, keys, static_cast<uint32_t*>(results), size,
                                rows);
                            CAIRN_RETURN_IF_LAUNCH_FAILED("BinarySearch");
                            return absl::OkStatus();
                          },
                          bytes};
  }
  if (lookup.index == "baseline:thrust") {
    return Contender<Key>{[=](const Key* keys, size_t size, void* results) -> absl::Status {
                            auto* out = static_cast<uint32_t*>(results);
                            thrust::lower_bound(thrust::cuda::par_nosync.on(stream), sorted,
                                                sorted + n, keys, keys + size, out);
                            if (rows) {
                              RowsAt<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(
                                  sorted, row_ids, n, keys, out, size);
                            }
                            CAIRN_RETURN_IF_LAUNCH_FAILED("RowsAt");
                            return absl::OkStatus();
                          },
                          bytes};
  }
  return absl::InvalidArgumentError("no such baseline");
}

// `query_of` is for strategies whose answers are in key order.
template <typename Key>
absl::StatusOr<Contender<Key>> MakeContender(const DeviceLookup& lookup,
                                             const EntrySet<Key>& entries, uint32_t* query_of,
                                             cudaStream_t stream) {
  if (lookup.index.starts_with("baseline:")) return MakeBaseline(lookup, entries, stream);
  ASSIGN_OR_RETURN(const auto made, GetIndex<Key>(lookup.index, lookup.set, lookup.log2_n));
  const std::shared_ptr<const DeviceIndex>& index = made;
  return Contender<Key>{[index, stream, query_of, answer = lookup.answer, way = lookup.way](
                            const Key* keys, size_t size, void* results) {
                          DeviceBatch batch{
                              answer == DeviceAnswer::kPosition   ? Operation::kLowerBound
                              : answer == DeviceAnswer::kContains ? Operation::kContains
                                                                  : Operation::kFindFirst,
                              DeviceKeys(keys, size)};
                          batch.values = static_cast<uint32_t*>(results);
                          batch.found = static_cast<bool*>(results);
                          return way.strategy == Strategy::kUnbuffered
                                     ? index->Execute(batch, stream)
                                     : Execute(*index, batch, way, query_of, stream);
                        },
                        index->memory_bytes()};
}

template <typename Key>
absl::Status CheckAnswers(const DeviceLookup& lookup, const EntrySet<Key>& entries,
                          const QuerySet<Key>& queries, const void* results,
                          const uint32_t* query_of, cudaStream_t stream) {
  const size_t size = queries.size();
  if (query_of != nullptr) {
    return CheckFirstRowsOf(queries, size, query_of, static_cast<const RowId*>(results), stream);
  }
  switch (lookup.answer) {
    case DeviceAnswer::kPosition:
      return CheckPositions(entries, queries, 0, size, static_cast<const Position*>(results),
                            stream);
    case DeviceAnswer::kContains:
      return CheckFound(queries, 0, size, static_cast<const bool*>(results), stream);
    default:
      return CheckFirstRows(queries, 0, size, static_cast<const RowId*>(results), stream);
  }
}

template <typename Key>
absl::Status PointLookup(benchmark::State& state, cudaStream_t stream, const DeviceLookup& lookup) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(lookup.set, lookup.log2_n));
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(lookup.set, lookup.log2_n, lookup.mix));
  const QuerySet<Key>& q = *queries;
  ASSIGN_OR_RETURN(const auto query_of,
                   DeviceBuffer<uint32_t>::Allocate(
                       lookup.way.order == ResultOrder::kKey ? q.size() : 0, stream));
  ASSIGN_OR_RETURN(const auto contender,
                   MakeContender<Key>(lookup, *entries, query_of.data(), stream));
  ASSIGN_OR_RETURN(const auto results, DeviceBuffer<uint32_t>::Allocate(q.size(), stream));
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream, [&] {
                     return contender.search(q.keys.data(), q.size(), results.data());
                   }));
  ASSIGN_OR_RETURN(const double limit, RandomReadSeconds(contender.bytes, q.size(), stream));
  Report(state, seconds,
         {.queries = q.size(),
          .bytes = contender.bytes,
          .entries = entries->size(),
          .limit_seconds = limit});
  return CheckAnswers(lookup, *entries, q, results.data(), query_of.data(), stream);
}

// All rows of each key: by Scan, or in two steps, between which the caller allocates memory.
template <typename Key>
absl::Status FindAll(benchmark::State& state, cudaStream_t stream, const DeviceLookup& lookup) {
  constexpr size_t kQueries = size_t{1} << 24;
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(lookup.set, lookup.log2_n));
  ASSIGN_OR_RETURN(const auto made, GetIndex<Key>(lookup.index, lookup.set, lookup.log2_n));
  const DeviceIndex& index = *made;
  ASSIGN_OR_RETURN(const auto queries,
                   GetQueries<Key>(lookup.set, lookup.log2_n, lookup.mix, kQueries));
  const DeviceKeys keys = DeviceKeys(queries->keys.data(), kQueries);
  const DeviceRanges ranges{keys, keys, Bound::kInclusive, Bound::kInclusive};
  ASSIGN_OR_RETURN(const auto begin, DeviceBuffer<Position>::Allocate(kQueries, stream));
  ASSIGN_OR_RETURN(const auto offsets, DeviceBuffer<uint64_t>::Allocate(kQueries + 1, stream));
  const size_t most = kQueries * (lookup.set == KeySet::kDuplicates   ? 16
                                  : lookup.set == KeySet::kNearUnique ? 2
                                                                      : 1);
  ASSIGN_OR_RETURN(const auto row_ids, DeviceBuffer<RowId>::Allocate(most, stream));
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    if (lookup.answer == DeviceAnswer::kFind) {
      return index.Scan(ranges, UINT64_MAX, Order::kAscending, offsets.data(), row_ids.data(), most,
                        stream);
    }
    RETURN_IF_ERROR(index.PlanScan(ranges, UINT64_MAX, Order::kAscending, begin.data(),
                                   offsets.data(), stream));
    uint64_t rows = 0;
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(&rows, offsets.data() + kQueries, sizeof rows,
                                               cudaMemcpyDeviceToHost, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    if (rows > most) return absl::InternalError(absl::StrFormat("%d rows were planned", rows));
    return index.CopyRows(begin.data(), offsets.data(), kQueries, rows, Order::kAscending,
                          row_ids.data(), stream);
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds,
         {.queries = kQueries, .bytes = index.memory_bytes(), .entries = entries->size()});
  return CheckMatches(*entries, queries->keys.data(), queries->keys.data(), kQueries,
                      offsets.data(), row_ids.data(), stream);
}

const char* AnswerName(DeviceAnswer answer) {
  constexpr const char* kNames[] = {"row_id", "position", "contains", "find_all", "find"};
  return kNames[static_cast<size_t>(answer)];
}

}  // namespace

template <typename Key>
void RegisterDeviceLookup(const DeviceLookup& lookup) {
  std::string name = absl::StrFormat("PointLookup/%s/u%d/n:%d/%s", lookup.index, 8 * sizeof(Key),
                                     lookup.log2_n, AnswerName(lookup.answer));
  for (const char* variant : {KeySetName(lookup.set), QueryMixName(lookup.mix)}) {
    if (*variant != 0) absl::StrAppendFormat(&name, "/%s", variant);
  }
  if (lookup.way.strategy != Strategy::kUnbuffered) {
    name += lookup.way.strategy == Strategy::kBuffered ? "/buffered" : "/sort_based";
  }
  if (lookup.way.part_bits != DeviceStrategyOptions().part_bits) {
    absl::StrAppendFormat(&name, ",bits=%d", lookup.way.part_bits);
  }
  if (lookup.way.order == ResultOrder::kKey) name += ",key_order";
  RegisterDeviceBenchmark(name, [lookup](benchmark::State& state, cudaStream_t stream) {
    return lookup.answer >= DeviceAnswer::kFindAll ? FindAll<Key>(state, stream, lookup)
                                                   : PointLookup<Key>(state, stream, lookup);
  });
}

template void RegisterDeviceLookup<uint32_t>(const DeviceLookup&);
template void RegisterDeviceLookup<uint64_t>(const DeviceLookup&);

namespace {

template <typename Key>
void RegisterSize(int log2_n) {
  for (const char* index : {"gpu:auto", "gpu:packed,directory=bitmap", "gpu:packed,directory=tree",
                            "gpu:fast", "gpu:btree", "gpu:pivot", "gpu:eytzinger",
                            "gpu:sorted_array", "baseline:gpu_lower_bound", "baseline:thrust"}) {
    RegisterDeviceLookup<Key>({index, log2_n});
    if (std::string_view(index) == "gpu:auto" || log2_n == 24 || log2_n == 28) {
      RegisterDeviceLookup<Key>({index, log2_n, DeviceAnswer::kPosition});
    }
  }
  for (DeviceAnswer answer :
       {DeviceAnswer::kContains, DeviceAnswer::kFindAll, DeviceAnswer::kFind}) {
    RegisterDeviceLookup<Key>({"gpu:auto", log2_n, answer});
  }
  // Detects performance cliffs.
  if (log2_n < 20) return;
  constexpr DeviceAnswer kRowId = DeviceAnswer::kRowId;
  for (const char* index : {"gpu:auto", "gpu:packed,directory=tree", "baseline:gpu_lower_bound"}) {
    for (QueryMix mix :
         {QueryMix::kMiss, QueryMix::kHalfMiss, QueryMix::kZipf, QueryMix::kSorted}) {
      RegisterDeviceLookup<Key>({index, log2_n, kRowId, KeySet::kUniform, mix});
    }
  }
  for (KeySet set : {KeySet::kClustered, KeySet::kRuns, KeySet::kDuplicates, KeySet::kNearUnique}) {
    for (const char* index :
         {"gpu:auto", "gpu:packed,directory=tree", "baseline:gpu_lower_bound"}) {
      RegisterDeviceLookup<Key>({index, log2_n, kRowId, set});
      RegisterDeviceLookup<Key>({index, log2_n, kRowId, set, QueryMix::kMiss});
    }
    RegisterDeviceLookup<Key>({"gpu:auto", log2_n, DeviceAnswer::kFindAll, set});
  }
}

const RegisterInMain lookups_registered([] {
  for (int log2_n : {16, 18, 20, 22, 24, 26, 28}) {
    RegisterSize<uint32_t>(log2_n);
    RegisterSize<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench
