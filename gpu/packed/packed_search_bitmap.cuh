#pragma once

#include "gpu/packed/packed_search.cuh"
#include "gpu/packed/rank_bitmap.cuh"

namespace cairn::gpu {

template <typename Queries>
absl::Status SearchUnderBitmap(const PackedView& view,
                               const RankBitmapView<typename Queries::Key>& directory,
                               PackedAnswer answer, const PackedBatch<Queries>& batch,
                               cudaStream_t stream) {
  RankBitmapDirectory<typename Queries::Key> in_shared = {directory};
  // Nodes in shared memory spare the second-level cache a third of what it is asked for, which is
  // the limit where leaves are in it too.
  if (batch.size >= kLargeBatch<Queries> && kBlocksAtOnce<Queries> == 0) {
    in_shared.stages_nodes = true;
    ASSIGN_OR_RETURN(const size_t most, MostSharedBytes());
    const size_t of_queries = QueryReader<Queries>(batch.queries).shared_bytes();
    if (BehindDirectory(in_shared) + of_queries > most) in_shared.stages_nodes = false;
  }
  return SearchPacked(view, in_shared, answer, batch, stream);
}

}  // namespace cairn::gpu
