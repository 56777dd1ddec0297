#include "test/gpu/search/search_policies.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/search/array_searcher.cuh"
#include "gpu/search/eytzinger_build.cuh"
#include "gpu/search/eytzinger_searcher.cuh"
#include "gpu/search/pivot_build.cuh"
#include "gpu/search/pivot_searcher.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr EntryLayout kSoA = EntryLayout::kSoA, kAoS = EntryLayout::kAoS;

struct Question {
  Operation query;
  DeviceKeys keys;
  void* results;
  cudaStream_t stream;
};

// Settings that are not compiled in.
struct Setting {
  size_t pinned_bytes = 0;
  SearchSchedule schedule = {};
};

template <typename Policy, typename Searcher>
absl::Status Ask(Searcher searcher, size_t entries, const Question& q, const Setting& setting) {
  if constexpr (Policy::kPinning != Pinning::kNone) {
    searcher.PinUpTo(setting.pinned_bytes, Policy::kPinning);
  }
  return SearchBatch<Policy>(searcher, entries, q.query, q.keys, q.results, q.stream,
                             setting.schedule);
}

template <typename Key, EntryLayout kLayout, typename Policy>
PolicySearch<Key> Array(const char* name, const Setting& setting = {}) {
  return {absl::StrFormat("array, %s", name),
          [setting](const DeviceRun<Key>& run, Operation query, DeviceKeys keys, void* results,
                    cudaStream_t stream) -> absl::Status {
            RunEntries<Key, kLayout> entries;
            RETURN_IF_ERROR(entries.Build(run, stream));
            return Ask<Policy>(ArraySearcher<Key, kLayout>(entries.view, run.size()), run.size(),
                               {query, keys, results, stream}, setting);
          }};
}

template <typename Key, int kFanOut, EntryLayout kLayout, int kLanes, typename Policy>
PolicySearch<Key> Eytzinger(const char* name, const Setting& setting = {}) {
  return {absl::StrFormat("Eytzinger, K %d, %d lanes, %s", kFanOut, kLanes, name),
          [setting](const DeviceRun<Key>& run, Operation query, DeviceKeys keys, void* results,
                    cudaStream_t stream) -> absl::Status {
            ASSIGN_OR_RETURN(auto entries, ArrangeEytzinger<Key, kFanOut>(run, kLayout, stream));
            return Ask<Policy>(
                EytzingerSearcher<Key, kFanOut, kLayout, kLanes>(
                    EytzingerView<kFanOut, kLayout>(entries), EytzingerLayout<kFanOut>(run.size())),
                run.size(), {query, keys, results, stream}, setting);
          }};
}

template <typename Key, int kFanOut, EntryLayout kLayout, int kLanes, typename Policy>
PolicySearch<Key> Pivot(int left_out, const char* name, const Setting& setting = {}) {
  return {absl::StrFormat("pivots, K %d, %d levels left out, %d lanes, %s", kFanOut, left_out,
                          kLanes, name),
          [setting, left_out](const DeviceRun<Key>& run, Operation query, DeviceKeys keys,
                              void* results, cudaStream_t stream) -> absl::Status {
            const int full = PivotLayout<kFanOut>::FullLevels(run.size());
            const PivotLayout<kFanOut> layout(run.size(), full < left_out ? 0 : full - left_out);
            ASSIGN_OR_RETURN(auto pivots,
                             BuildPivots<Key, kFanOut>(run.keys.data(), layout, stream));
            RunEntries<Key, kLayout> entries;
            RETURN_IF_ERROR(entries.Build(run, stream));
            return Ask<Policy>(
                PivotSearcher<Key, kFanOut, kLayout, kLanes>(pivots.data(), entries.view, layout),
                run.size(), {query, keys, results, stream}, setting);
          }};
}

constexpr SearchSchedule kOneBlock = {.blocks_per_multiprocessor = 1};

}  // namespace

template <typename Key>
std::vector<PolicySearch<Key>> PolicySearches() {
  constexpr Reorder kNone = Reorder::kNone, kLookups = Reorder::kLookups,
                    kDouble = Reorder::kDouble;
  constexpr Pinning kSteps = Pinning::kSteps, kFull = Pinning::kFull;
  using Full = SearchPolicy<128, 8, 1, kDouble, kFull>;
  using Steps = SearchPolicy<64, 4, 2, kLookups, kSteps>;
  return {
      Array<Key, kSoA, SearchPolicy<1024>>("dynamic"),
      Array<Key, kSoA, SearchPolicy<32, 3>>("static", {0, kOneBlock}),
      Array<Key, kSoA, Steps>("steps, 1000 bytes", {1000, kOneBlock}),
      Array<Key, kAoS, Full>("full, 1000 bytes", {1000, kOneBlock}),
      Array<Key, kAoS, Full>("full, 100 KB", {100000, {}}),
      Array<Key, kAoS, Full>("full, nothing", {7, {}}),
      Eytzinger<Key, 2, kSoA, 1, Full>("full, 1000 bytes", {1000, kOneBlock}),
      Eytzinger<Key, 2, kAoS, 1, Steps>("steps, 1000 bytes", {1000, {}}),
      Eytzinger<Key, 3, kSoA, 2, SearchPolicy<64, 2>>("dynamic"),
      Eytzinger<Key, 4, kAoS, 1, Full>("full, 500 bytes", {500, {}}),
      Eytzinger<Key, 9, kSoA, 8, Steps>("steps, 3000 bytes", {3000, {}}),
      Eytzinger<Key, 17, kSoA, 1, SearchPolicy<64>>("dynamic"),
      Eytzinger<Key, 17, kAoS, 16, Full>("full, 3000 bytes", {3000, kOneBlock}),
      Eytzinger<Key, 33, kSoA, 32, SearchPolicy<128, 6, 6, kNone>>("dynamic"),
      Pivot<Key, 2, kSoA, 1, Full>(1, "full, 1000 bytes", {1000, kOneBlock}),
      Pivot<Key, 2, kAoS, 1, Steps>(4, "steps, 1000 bytes", {1000, {}}),
      Pivot<Key, 3, kSoA, 2, SearchPolicy<64, 2>>(0, "dynamic"),
      Pivot<Key, 4, kAoS, 1, Full>(2, "full, 500 bytes", {500, {}}),
      Pivot<Key, 9, kAoS, 8, Steps>(1, "steps, 3000 bytes", {3000, {}}),
      Pivot<Key, 17, kSoA, 1, SearchPolicy<64>>(0, "dynamic"),
      Pivot<Key, 17, kAoS, 16, Full>(0, "full, 3000 bytes", {3000, kOneBlock}),
      Pivot<Key, 33, kSoA, 32, SearchPolicy<128, 6, 6, kNone>>(1, "dynamic"),
  };
}

template std::vector<PolicySearch<uint32_t>> PolicySearches();
template std::vector<PolicySearch<uint64_t>> PolicySearches();

}  // namespace cairn::gpu
