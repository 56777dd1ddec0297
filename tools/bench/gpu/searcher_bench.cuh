#pragma once

#include <string>

#include "absl/strings/str_format.h"
#include "gpu/run/entry_array.h"
#include "gpu/search/search_kernel.cuh"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/gpu_limit.h"

// Benchmarks of the search kernel with searchers and policies that the library does not use. A
// scheme builds the data of a searcher:
//
//   struct XScheme {
//     using DataType = …;
//     static std::string Name();  // including its parameters
//     absl::Status Build(const gpu::DeviceRun<Key>& run, cudaStream_t stream);
//     XSearcher Searcher() const;
//     uint64_t bytes() const;  // beyond the entries
//   };

namespace cairn::bench {

// Shared memory that pinning may take.
inline constexpr size_t kPinnedBytes = size_t{96} << 10;

// Settings that are not compiled in.
struct SearcherSetting {
  int log2_n;
  gpu::Pinning pinning = gpu::Pinning::kNone;
  gpu::SearchSchedule schedule = {};
};

template <typename Policy>
std::string PolicyName(const SearcherSetting& setting) {
  std::string name = absl::StrFormat("%dx%d", Policy::kThreads, Policy::kQueries);
  if (Policy::kInFlight > 1) absl::StrAppendFormat(&name, ",%d_at_once", Policy::kInFlight);
  name += setting.schedule.blocks_per_multiprocessor > 0 ? ",static" : ",dynamic";
  if (setting.pinning != gpu::Pinning::kNone) {
    name += setting.pinning == gpu::Pinning::kSteps ? ",steps" : ",full";
  }
  if (Policy::kReorder != gpu::Reorder::kNone) {
    name += Policy::kReorder == gpu::Reorder::kLookups ? ",lookups" : ",double";
  }
  return name;
}

// A batch of 2^27 random hits answered with row ids.
template <typename Scheme, typename Policy>
absl::Status SearcherLookup(benchmark::State& state, cudaStream_t stream,
                            const SearcherSetting& setting) {
  using Key = typename Scheme::DataType;
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, setting.log2_n));
  ASSIGN_OR_RETURN(const auto queries,
                   GetQueries<Key>(KeySet::kUniform, setting.log2_n, QueryMix::kHits));
  const QuerySet<Key>& q = *queries;
  Scheme scheme;
  RETURN_IF_ERROR(scheme.Build(entries->run, stream));
  auto searcher = scheme.Searcher();
  if (setting.pinning != gpu::Pinning::kNone) searcher.PinUpTo(kPinnedBytes, setting.pinning);
  ASSIGN_OR_RETURN(const auto results, gpu::DeviceBuffer<RowId>::Allocate(q.size(), stream));
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream, [&] {
                     return gpu::SearchBatch<Policy>(searcher, entries->size(),
                                                     Operation::kFindFirst,
                                                     DeviceKeys(q.keys.data(), q.size()),
                                                     results.data(), stream, setting.schedule);
                   }));
  const uint64_t bytes = gpu::EntryArray<Key>::BytesOf(entries->size()) + scheme.bytes();
  ASSIGN_OR_RETURN(const double limit, RandomReadSeconds(bytes, q.size(), stream));
  Report(state, seconds,
         {.queries = q.size(), .bytes = bytes, .entries = entries->size(), .limit_seconds = limit});
  return CheckFirstRows(q, 0, q.size(), results.data(), stream);
}

// Registers <prefix><scheme>/<key>/n:<log2 n>/<policy>.
template <typename Scheme, typename Policy>
void RegisterSearcher(const char* prefix, const SearcherSetting& setting) {
  const std::string name = absl::StrFormat("%s%s/u%d/n:%d/%s", prefix, Scheme::Name(),
                                           8 * sizeof(typename Scheme::DataType), setting.log2_n,
                                           PolicyName<Policy>(setting));
  RegisterDeviceBenchmark(name, [setting](benchmark::State& state, cudaStream_t stream) {
    return SearcherLookup<Scheme, Policy>(state, stream, setting);
  });
}

}  // namespace cairn::bench
