#pragma once

#include "gpu/packed/kary_directory.cuh"
#include "gpu/packed/packed_search.cuh"

namespace cairn::gpu {

template <typename Queries>
absl::Status SearchUnderTree(const PackedView& view,
                             const KaryDirectory<typename Queries::Key>& directory,
                             PackedAnswer answer, const PackedBatch<Queries>& batch,
                             cudaStream_t stream) {
  return SearchPacked(view, directory.view(), answer, batch, stream);
}

}  // namespace cairn::gpu
