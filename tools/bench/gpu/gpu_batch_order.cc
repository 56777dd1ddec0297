// BatchOrder/<index>/<key>/n:<log2 n>/batch:<log2 b>/<sorted or any>: row ids of 2^b random keys of
// an index of 2^n uniform keys, all in device memory, in ascending or random order. ratio_to_any of
// sorted batches is their speedup over random order, in one process.
#include <string>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench::gpu_batch_order {
namespace {

template <typename Key>
absl::StatusOr<double> TimeBatch(const DeviceIndex& index, int log2_n, int log2_batch, QueryMix mix,
                                 cudaStream_t stream) {
  const size_t size = size_t{1} << log2_batch;
  ASSIGN_OR_RETURN(const auto queries, GetQueries<Key>(KeySet::kUniform, log2_n, mix, size));
  ASSIGN_OR_RETURN(const auto rows, gpu::DeviceBuffer<RowId>::Allocate(size, stream));
  const DeviceBatch batch =
      DeviceBatch::FindFirst(DeviceKeys(queries->keys.data(), size), rows.data());
  ASSIGN_OR_RETURN(const double seconds,
                   MedianSeconds(stream, [&] { return index.Execute(batch, stream); }));
  RETURN_IF_ERROR(CheckFirstRows(*queries, 0, size, rows.data(), stream));
  return seconds;
}

template <typename Key>
absl::Status BatchOrder(benchmark::State& state, const std::string& factory, int log2_n,
                        int log2_batch, QueryMix mix, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto index, GetIndex<Key>(factory, KeySet::kUniform, log2_n));
  ASSIGN_OR_RETURN(const double seconds, TimeBatch<Key>(*index, log2_n, log2_batch, mix, stream));
  Report(state, seconds,
         {.queries = uint64_t{1} << log2_batch,
          .bytes = index->memory_bytes(),
          .entries = index->size()});
  static double any_seconds = 0;
  static int any_of = 0;
  if (mix == QueryMix::kHits) {
    any_seconds = seconds;
    any_of = log2_batch;
  } else if (any_of == log2_batch) {
    state.counters["ratio_to_any"] = any_seconds / seconds;
  }
  return absl::OkStatus();
}

const RegisterInMain registered([] {
  const auto add = [](auto key, const char* index, int log2_n, int log2_batch, QueryMix mix) {
    using Key = decltype(key);
    RegisterDeviceBenchmark(
        absl::StrFormat("BatchOrder/%s/u%d/n:%d/batch:%d/%s", index, 8 * sizeof(Key), log2_n,
                        log2_batch, mix == QueryMix::kHits ? "any" : "sorted"),
        [=](benchmark::State& state, cudaStream_t stream) {
          return BatchOrder<Key>(state, index, log2_n, log2_batch, mix, stream);
        });
  };
  for (const char* index : {"gpu:auto", "gpu:packed,directory=tree"}) {
    for (const bool wide : {false, true}) {
      for (int log2_batch = 16; log2_batch <= 27; ++log2_batch) {
        for (const QueryMix mix : {QueryMix::kHits, QueryMix::kSorted}) {
          wide ? add(uint64_t{}, index, 28, log2_batch, mix)
               : add(uint32_t{}, index, 28, log2_batch, mix);
        }
      }
    }
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_batch_order
