#include "gpu/aggregates/aggregate_search.cuh"
#include "gpu/packed/rank_bitmap.cuh"

namespace cairn::gpu {

template <typename Key>
absl::Status AggregateUnderBitmap(const AggregateView& view, const RankBitmapView<Key>& directory,
                                  const RangeEnds<Key>& ranges, const AggregateOutput& output,
                                  cudaStream_t stream) {
  return AggregateUnder(view, RankBitmapDirectory<Key>{directory}, ranges, output, stream);
}

#define CAIRN_INSTANTIATE(Key)                                                                 \
  template absl::Status AggregateUnderBitmap(const AggregateView&, const RankBitmapView<Key>&, \
                                             const RangeEnds<Key>&, const AggregateOutput&,    \
                                             cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
