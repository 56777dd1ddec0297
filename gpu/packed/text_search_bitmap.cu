#include "gpu/packed/packed_search_bitmap.cuh"
#include "index/layout/wide_key.h"

namespace cairn::gpu {

template absl::Status SearchUnderBitmap(const PackedView&, const RankBitmapView<uint64_t>&,
                                        PackedAnswer, const PackedBatch<TextQueries<uint64_t>>&,
                                        cudaStream_t);
template absl::Status SearchUnderBitmap(const PackedView&, const RankBitmapView<WideKey>&,
                                        PackedAnswer, const PackedBatch<TextQueries<WideKey>>&,
                                        cudaStream_t);

}  // namespace cairn::gpu
