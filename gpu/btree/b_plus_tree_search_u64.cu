#include "gpu/btree/b_plus_tree_search.cuh"

namespace cairn::gpu {

template absl::Status SearchPages(const BPlusTreePages<uint64_t>&, BPlusTreeMethod, Operation,
                                  DeviceKeys, void*, cudaStream_t);

}  // namespace cairn::gpu
