#include "gpu/packed/packed_search.cuh"
#include "gpu/packed/rank_bitmap.cuh"

namespace cairn::gpu {

template <typename Key>
absl::Status SearchUnderBitmap(const PackedView& view, const RankBitmapView<Key>& directory,
                               PackedAnswer answer, const PackedBatch<Key>& batch,
                               cudaStream_t stream) {
  return SearchPacked(view, RankBitmapDirectory<Key>{directory}, answer, batch, stream);
}

template absl::Status SearchUnderBitmap(const PackedView&, const RankBitmapView<uint32_t>&,
                                        PackedAnswer, const PackedBatch<uint32_t>&, cudaStream_t);
template absl::Status SearchUnderBitmap(const PackedView&, const RankBitmapView<uint64_t>&,
                                        PackedAnswer, const PackedBatch<uint64_t>&, cudaStream_t);

}  // namespace cairn::gpu
