#include "gpu/packed/packed_search_bitmap.cuh"

namespace cairn::gpu {

template absl::Status SearchUnderBitmap(const PackedView&, const RankBitmapView<uint32_t>&,
                                        PackedAnswer, const PackedBatch<NumberQueries<uint32_t>>&,
                                        cudaStream_t);
template absl::Status SearchUnderBitmap(const PackedView&, const RankBitmapView<uint64_t>&,
                                        PackedAnswer, const PackedBatch<NumberQueries<uint64_t>>&,
                                        cudaStream_t);

}  // namespace cairn::gpu
