// PointLookup/<index>/<key>/n:<log2 n>/row_id/<strategy>[,bits=<b>][,key_order]: as in
// gpu_point_lookup.cu, by a batch strategy: buffered (queries gathered by b leading bits, 8 where
// it is not said) or sort_based; results in the caller's order, or in that of keys, with the
// queries' numbers beside them.
#include <cuda_runtime.h>

#include <string>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/device_memory.h"
#include "tools/bench/device_bench.h"
#include "tools/bench/device_data.h"
#include "tools/bench/gpu_limit.h"

namespace cairn::bench {
namespace {

using gpu::DeviceBuffer;

template <typename Key>
absl::Status StrategyLookup(benchmark::State& state, cudaStream_t stream, const std::string& name,
                            int log2_n, const DeviceStrategyOptions& options) {
  const auto entries = GetEntries<Key>(KeySet::kUniform, log2_n);
  if (!entries.ok()) return entries.status();
  const auto index = GetIndex<Key>(name, KeySet::kUniform, log2_n);
  if (!index.ok()) return index.status();
  const auto queries = GetQueries<Key>(KeySet::kUniform, log2_n, QueryMix::kHits);
  if (!queries.ok()) return queries.status();
  const size_t size = (*queries)->size();
  const auto rows = DeviceBuffer<RowId>::Allocate(size, stream);
  if (!rows.ok()) return rows.status();
  const bool by_key = options.order == ResultOrder::kKey;
  const auto query_of = DeviceBuffer<uint32_t>::Allocate(by_key ? size : 0, stream);
  if (!query_of.ok()) return query_of.status();
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&] {
    return FindFirst(**index, AsDeviceKeys((*queries)->keys.data(), size), rows->data(), options,
                     query_of->data(), stream);
  });
  if (!seconds.ok()) return seconds.status();
  const uint64_t bytes = (*index)->memory_bytes();
  const absl::StatusOr<double> limit = RandomReadSeconds(bytes, size, stream);
  if (!limit.ok()) return limit.status();
  Report(state, *seconds,
         {.queries = size, .bytes = bytes, .entries = (*entries)->size(), .limit_seconds = *limit});
  return by_key ? CheckFirstRowsOf(**queries, size, query_of->data(), rows->data(), stream)
                : CheckFirstRows(**queries, 0, size, rows->data(), stream);
}

template <typename Key>
void Register(const std::string& index, int log2_n, const DeviceStrategyOptions& options) {
  std::string name =
      absl::StrFormat("PointLookup/%s/u%d/n:%d/row_id/%s", index, 8 * sizeof(Key), log2_n,
                      options.strategy == Strategy::kBuffered ? "buffered" : "sort_based");
  if (options.part_bits != DeviceStrategyOptions().part_bits) {
    absl::StrAppendFormat(&name, ",bits=%d", options.part_bits);
  }
  if (options.order == ResultOrder::kKey) name += ",key_order";
  RegisterDeviceBenchmark(name, [=](benchmark::State& state, cudaStream_t stream) {
    return StrategyLookup<Key>(state, stream, index, log2_n, options);
  });
}

template <typename Key>
void RegisterSize(int log2_n) {
  for (const char* index : {"gpu:auto", "gpu:packed,directory=tree", "gpu:sorted_array"}) {
    for (ResultOrder order : {ResultOrder::kKey, ResultOrder::kCaller}) {
      for (int bits : {4, 8, 11}) Register<Key>(index, log2_n, {Strategy::kBuffered, order, bits});
      Register<Key>(index, log2_n, {Strategy::kSortBased, order});
    }
  }
}

const RegisterInMain registered([] {
  for (int log2_n : {24, 26, 28}) {
    RegisterSize<uint32_t>(log2_n);
    RegisterSize<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench
