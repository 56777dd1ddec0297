// Build/<index>/<key>/n:<log2 n>[/<key set>]: a structure gpu:… from 2^k unsorted pairs of a key
// and a row id in device memory, which are not changed. Counters: ratio_to_limit, to
// cub::DeviceRadixSort::SortPairs of 2^k pairs in the same process; bytes_per_key of the index;
// peak_to_pairs, the build's peak memory, including the index, divided by the pairs' bytes.
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/gpu_limit.h"

namespace cairn::bench::gpu_build {
namespace {

// Fails if the index does not find its own rows.
template <typename Key>
absl::Status CheckIndex(const DeviceIndex& index, KeySet set, int log2_n, cudaStream_t stream) {
  constexpr size_t kQueries = size_t{1} << 20;
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(set, log2_n, QueryMix::kHits, kQueries));
  ASSIGN_OR_RETURN(const auto row_ids, gpu::DeviceBuffer<RowId>::Allocate(kQueries, stream));
  RETURN_IF_ERROR(index.Execute(
      DeviceBatch::FindFirst(DeviceKeys(queries->keys.data(), kQueries), row_ids.data()), stream));
  return CheckFirstRows(*queries, 0, kQueries, row_ids.data(), stream);
}

template <typename Key>
absl::Status Build(benchmark::State& state, cudaStream_t stream, const std::string& factory,
                   KeySet set, int log2_n) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(set, log2_n));
  const EntrySet<Key>& e = *entries;
  std::unique_ptr<DeviceIndex> index;
  size_t before = 0, peak = 0;
  const auto seconds = MedianWallSeconds(stream, [&]() -> absl::Status {
    index = nullptr;
    before = gpu::AllocatedDeviceBytes();
    (void)gpu::TakePeakDeviceBytes();
    ASSIGN_OR_RETURN(auto built, MakeDeviceIndex(factory, DeviceKeys(e.keys.data(), e.size()),
                                                 e.row_ids.data(), stream));
    peak = gpu::TakePeakDeviceBytes();
    index = std::move(built);
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds.status();
  RETURN_IF_ERROR(CheckIndex<Key>(*index, set, log2_n, stream));
  const uint64_t bytes = index->memory_bytes();
  index = nullptr;
  ASSIGN_OR_RETURN(const auto limit, SortPairsSeconds<Key>(log2_n, stream));
  Report(state, *seconds,
         {.rows = e.size(), .bytes = bytes, .entries = e.size(), .limit_seconds = limit});
  state.counters["peak_to_pairs"] =
      static_cast<double>(peak - before) / static_cast<double>(e.keys.bytes() + e.row_ids.bytes());
  return absl::OkStatus();
}

template <typename Key>
void Register(const std::string& index, int log2_n, KeySet set = KeySet::kUniform) {
  std::string name = absl::StrFormat("Build/%s/u%d/n:%d", index, 8 * sizeof(Key), log2_n);
  if (set != KeySet::kUniform) absl::StrAppendFormat(&name, "/%s", KeySetName(set));
  RegisterDeviceBenchmark(name, [=](benchmark::State& state, cudaStream_t stream) {
    return Build<Key>(state, stream, index, set, log2_n);
  });
}

template <typename Key>
void RegisterSize(int log2_n) {
  for (const char* index :
       {"gpu:auto", "gpu:packed,directory=bitmap", "gpu:packed,directory=tree", "gpu:fast",
        "gpu:btree", "gpu:pivot", "gpu:eytzinger", "gpu:sorted_array"}) {
    Register<Key>(index, log2_n);
  }
  for (KeySet set : {KeySet::kClustered, KeySet::kRuns, KeySet::kDuplicates, KeySet::kNearUnique}) {
    Register<Key>("gpu:auto", log2_n, set);
  }
}

const RegisterInMain registered([] {
  for (int log2_n : {16, 20, 24, 26, 28}) {
    RegisterSize<uint32_t>(log2_n);
    RegisterSize<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_build
