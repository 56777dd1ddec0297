#pragma once

#include "gpu/packed/packed_search.cuh"
#include "gpu/packed/rank_bitmap.cuh"

namespace cairn::gpu {

template <typename Queries>
absl::Status SearchUnderBitmap(const PackedView& view,
                               const RankBitmapView<typename Queries::Key>& directory,
                               PackedAnswer answer, const PackedBatch<Queries>& batch,
                               cudaStream_t stream) {
  return SearchPacked(view, RankBitmapDirectory<typename Queries::Key>{directory}, answer, batch,
                      stream);
}

}  // namespace cairn::gpu
