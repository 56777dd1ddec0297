#include "gpu/packed/packed_search_tree.cuh"

namespace cairn::gpu {

template absl::Status SearchUnderTree(const PackedView&, const KaryDirectory<uint32_t>&,
                                      PackedAnswer, const PackedBatch<NumberQueries<uint32_t>>&,
                                      cudaStream_t);
template absl::Status SearchUnderTree(const PackedView&, const KaryDirectory<uint64_t>&,
                                      PackedAnswer, const PackedBatch<NumberQueries<uint64_t>>&,
                                      cudaStream_t);

}  // namespace cairn::gpu
