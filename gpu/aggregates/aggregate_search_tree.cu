#include "gpu/aggregates/aggregate_search.cuh"
#include "gpu/packed/kary_directory.cuh"

namespace cairn::gpu {

template <typename Key>
absl::Status AggregateUnderTree(const AggregateView& view, const KaryDirectory<Key>& directory,
                                const RangeEnds<Key>& ranges, const AggregateOutput& output,
                                cudaStream_t stream) {
  return AggregateUnder(view, directory.view(), ranges, output, stream);
}

#define CAIRN_INSTANTIATE(Key)                                                              \
  template absl::Status AggregateUnderTree(const AggregateView&, const KaryDirectory<Key>&, \
                                           const RangeEnds<Key>&, const AggregateOutput&,   \
                                           cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
