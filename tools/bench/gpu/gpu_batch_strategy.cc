// PointLookup/<index>/<key>/n:<log2 n>/row_id/<strategy>[,bits=<b>][,key_order]: as in
// gpu_point_lookup.cu, by a batch strategy: buffered (queries gathered by b leading bits, 8 by
// default) or sort_based. Results are in the caller's order, or with key_order in the order of
// keys, together with the queries' numbers.
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/gpu_point_lookup.h"

namespace cairn::bench::gpu_batch_strategy {
namespace {

template <typename Key>
void RegisterSize(int log2_n) {
  for (const char* index : {"gpu:auto", "gpu:packed,directory=tree", "gpu:sorted_array"}) {
    DeviceLookup lookup{index, log2_n};
    for (ResultOrder order : {ResultOrder::kKey, ResultOrder::kCaller}) {
      for (int bits : {4, 8, 11}) {
        lookup.way = {Strategy::kBuffered, order, bits};
        RegisterDeviceLookup<Key>(lookup);
      }
      lookup.way = {Strategy::kSortBased, order};
      RegisterDeviceLookup<Key>(lookup);
    }
  }
}

const RegisterInMain registered([] {
  for (int log2_n : {20, 24, 26, 28}) {
    RegisterSize<uint32_t>(log2_n);
    RegisterSize<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_batch_strategy
