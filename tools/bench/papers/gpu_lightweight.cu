// Lightweight/<scheme>/<key>/n:<log2 n>/<policy>: the structures and the optimizations of Henneberg
// and Schuhknecht, "Is Binary Search Really All You Need?" (2025), sections 5.2 to 5.6, on batches
// of 2^27 random hits answered with row ids. <scheme> is one of theirs
//   AO+BS  EO+BS  AO+PB+BS  EO+KS  AO+PB+KS
// with its parameters, and <policy> is the policy of the search kernel:
//   threads x queries     threads of a block, queries of a thread in registers one after the other
//   ... at once           queries of a thread, or of a group of lanes, in flight together
//   static, dynamic       scheduling, section 4.1 (static: one block per multiprocessor)
//   steps, full           pinning of up to 96 KB, section 4.2
//   lookups, double       reordering, section 4.3
// Cairn's own structures, with their policies, are in PointLookup/gpu:…; these have other fan-outs,
// levels and layouts.
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/search/array_searcher.cuh"
#include "gpu/search/eytzinger_build.cuh"
#include "gpu/search/eytzinger_searcher.cuh"
#include "gpu/search/pivot_build.cuh"
#include "gpu/search/pivot_searcher.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/gpu_point_lookup.h"
#include "tools/bench/gpu/searcher_bench.cuh"

namespace cairn::bench::gpu_lightweight {
namespace {

using gpu::DeviceBuffer;
using gpu::DeviceRun;
using gpu::EntryArray;
using gpu::EntryLayout;
using gpu::Pinning;
using gpu::Reorder;
using gpu::SearchPolicy;
using gpu::SearchSchedule;

constexpr EntryLayout kSoA = EntryLayout::kSoA, kAoS = EntryLayout::kAoS;

const char* LayoutName(EntryLayout layout) {
  return layout == kSoA ? "soa" : "aos";
}

// The schemes: the data and its searcher. Bytes do not include the entries.
template <typename Key, EntryLayout kLayout>
struct SortedArrayScheme {
  using DataType = Key;
  static std::string Name() { return absl::StrFormat("AO+BS,%s", LayoutName(kLayout)); }
  absl::Status Build(const DeviceRun<Key>& run, cudaStream_t stream) {
    size = run.size();
    return entries.Build(run, stream);
  }
  gpu::ArraySearcher<Key, kLayout> Searcher() const { return {entries.view, size}; }
  uint64_t bytes() const { return 0; }

  gpu::RunEntries<Key, kLayout> entries;
  size_t size = 0;
};

template <typename Key, int kFanOut, EntryLayout kLayout, int kLanes>
struct EytzingerScheme {
  using DataType = Key;
  static std::string Name() {
    return absl::StrFormat("EO+%s,k=%d,lanes=%d,%s", kFanOut == 2 ? "BS" : "KS", kFanOut, kLanes,
                           LayoutName(kLayout));
  }
  absl::Status Build(const DeviceRun<Key>& run, cudaStream_t stream) {
    ASSIGN_OR_RETURN(entries, gpu::ArrangeEytzinger<Key, kFanOut>(run, kLayout, stream));
    size = run.size();
    return absl::OkStatus();
  }
  gpu::EytzingerSearcher<Key, kFanOut, kLayout, kLanes> Searcher() const {
    return {gpu::EytzingerView<kFanOut, kLayout>(entries), EytzingerLayout<kFanOut>(size)};
  }
  uint64_t bytes() const { return 0; }

  EntryArray<Key> entries;
  size_t size = 0;
};

template <typename Key, int kFanOut, EntryLayout kLayout, int kLanes, int kLevelsLeftOut>
struct PivotScheme {
  using DataType = Key;
  static std::string Name() {
    return absl::StrFormat("AO+PB+%s,k=%d,left_out=%d,lanes=%d,%s", kFanOut == 2 ? "BS" : "KS",
                           kFanOut, kLevelsLeftOut, kLanes, LayoutName(kLayout));
  }
  absl::Status Build(const DeviceRun<Key>& run, cudaStream_t stream) {
    layout = PivotLayout<kFanOut>(run.size(),
                                  PivotLayout<kFanOut>::FullLevels(run.size()) - kLevelsLeftOut);
    ASSIGN_OR_RETURN(pivots, gpu::BuildPivots<Key, kFanOut>(run.keys.data(), layout, stream));
    return entries.Build(run, stream);
  }
  gpu::PivotSearcher<Key, kFanOut, kLayout, kLanes> Searcher() const {
    return {pivots.data(), entries.view, layout};
  }
  uint64_t bytes() const { return pivots.bytes(); }

  DeviceBuffer<Key> pivots;
  gpu::RunEntries<Key, kLayout> entries;
  PivotLayout<kFanOut> layout;
};

template <typename Scheme, typename Policy>
void Register(const SearcherSetting& setting) {
  RegisterSearcher<Scheme, Policy>("Lightweight/", setting);
}

// A policy with and without pinning, under both schedules.
template <typename Scheme, int kThreads, int kQueries, Reorder kReorder>
void RegisterPinnings(int log2_n) {
  using Unpinned = SearchPolicy<kThreads, kQueries, 1, kReorder>;
  using Pinned = SearchPolicy<kThreads, kQueries, 1, kReorder, Pinning::kFull>;
  for (int blocks : {0, 1}) {
    const SearchSchedule schedule{blocks};
    Register<Scheme, Unpinned>({log2_n, Pinning::kNone, schedule});
    Register<Scheme, Pinned>({log2_n, Pinning::kSteps, schedule});
    Register<Scheme, Pinned>({log2_n, Pinning::kFull, schedule});
  }
}

// The columns of figures 14, 15, 17(a) and 18(a), and, beyond the paper, queries in flight.
template <typename Scheme>
void RegisterOptimisations(int log2_n) {
  RegisterPinnings<Scheme, 1024, 1, Reorder::kNone>(log2_n);
  RegisterPinnings<Scheme, 1024, 1, Reorder::kDouble>(log2_n);
  RegisterPinnings<Scheme, 128, 16, Reorder::kDouble>(log2_n);
  Register<Scheme, SearchPolicy<128, 16, 1, Reorder::kLookups>>({log2_n});
  Register<Scheme, SearchPolicy<256, 1>>({log2_n});
  Register<Scheme, SearchPolicy<256, 2>>({log2_n});
  Register<Scheme, SearchPolicy<256, 4>>({log2_n});
}

template <typename Scheme>
void RegisterInFlight(int log2_n) {
  Register<Scheme, SearchPolicy<256, 1>>({log2_n});
  Register<Scheme, SearchPolicy<256, 2>>({log2_n});
  Register<Scheme, SearchPolicy<256, 4>>({log2_n});
}

// Lanes of a group: one per key in the paper, one per 16 bytes in Cairn, and others.
void RegisterLanes(int log2_n) {
  RegisterInFlight<PivotScheme<uint32_t, 9, kAoS, 2, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint32_t, 9, kAoS, 4, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint32_t, 9, kAoS, 8, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint32_t, 17, kAoS, 2, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint32_t, 17, kAoS, 4, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint32_t, 17, kAoS, 16, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint64_t, 9, kAoS, 4, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint64_t, 9, kSoA, 4, 0>>(log2_n);
  RegisterInFlight<PivotScheme<uint64_t, 17, kAoS, 4, 0>>(log2_n);
  RegisterInFlight<EytzingerScheme<uint32_t, 9, kAoS, 4>>(log2_n);
  RegisterInFlight<EytzingerScheme<uint32_t, 17, kAoS, 4>>(log2_n);
}

// Figures 16, 17(b) and 18(b): fan-outs, layouts and levels, with Cairn's policies.
void RegisterProduct(int log2_n) {
  for (const char* layout : {"aos", "soa"}) {
    RegisterDeviceLookup<uint32_t>({absl::StrFormat("gpu:sorted_array,%s", layout), log2_n});
    for (int k : {2, 9, 17, 33}) {
      RegisterDeviceLookup<uint32_t>({absl::StrFormat("gpu:eytzinger,k=%d,%s", k, layout), log2_n});
      RegisterDeviceLookup<uint32_t>({absl::StrFormat("gpu:pivot,k=%d,%s", k, layout), log2_n});
      RegisterDeviceLookup<uint64_t>({absl::StrFormat("gpu:eytzinger,k=%d,%s", k, layout), log2_n});
      RegisterDeviceLookup<uint64_t>({absl::StrFormat("gpu:pivot,k=%d,%s", k, layout), log2_n});
    }
    for (int left_out = 1; left_out <= 8 && log2_n == 28; ++left_out) {
      RegisterDeviceLookup<uint32_t>(
          {absl::StrFormat("gpu:pivot,k=2,levels=%d,%s", log2_n - left_out, layout), log2_n});
    }
    RegisterDeviceLookup<uint32_t>(
        {absl::StrFormat("gpu:pivot,k=9,levels=%d,%s",
                         PivotLayout<9>::FullLevels(uint64_t{1} << log2_n) - 1, layout),
         log2_n});
  }
}

const RegisterInMain registered([] {
  for (int log2_n : {16, 18, 20, 22, 24, 26, 28}) {
    RegisterOptimisations<SortedArrayScheme<uint32_t, kSoA>>(log2_n);
    RegisterOptimisations<EytzingerScheme<uint32_t, 2, kSoA, 1>>(log2_n);
    RegisterOptimisations<PivotScheme<uint32_t, 2, kAoS, 1, 4>>(log2_n);
    RegisterOptimisations<EytzingerScheme<uint32_t, 9, kAoS, 8>>(log2_n);
    RegisterOptimisations<PivotScheme<uint32_t, 9, kAoS, 8, 0>>(log2_n);
    RegisterLanes(log2_n);
    RegisterProduct(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_lightweight
