#include "gpu/packed/kary_directory.cuh"
#include "gpu/packed/packed_search.cuh"

namespace cairn::gpu {

template <typename Key>
absl::Status SearchUnderTree(const PackedView& view, const KaryDirectory<Key>& directory,
                             PackedAnswer answer, const PackedBatch<Key>& batch,
                             cudaStream_t stream) {
  return SearchPacked(view, directory.view(), answer, batch, stream);
}

template absl::Status SearchUnderTree(const PackedView&, const KaryDirectory<uint32_t>&,
                                      PackedAnswer, const PackedBatch<uint32_t>&, cudaStream_t);
template absl::Status SearchUnderTree(const PackedView&, const KaryDirectory<uint64_t>&,
                                      PackedAnswer, const PackedBatch<uint64_t>&, cudaStream_t);

}  // namespace cairn::gpu
