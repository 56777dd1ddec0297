#include "gpu/packed/packed_search_tree.cuh"
#include "index/layout/wide_key.h"

namespace cairn::gpu {

template absl::Status SearchUnderTree(const PackedView&, const KaryDirectory<uint64_t>&,
                                      PackedAnswer, const PackedBatch<TextQueries<uint64_t>>&,
                                      cudaStream_t);
template absl::Status SearchUnderTree(const PackedView&, const KaryDirectory<WideKey>&,
                                      PackedAnswer, const PackedBatch<TextQueries<WideKey>>&,
                                      cudaStream_t);

}  // namespace cairn::gpu
