#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "gpu/btree/b_plus_tree_pages.h"

namespace cairn::gpu {

// DeviceIndex::CopyRows for B+-tree leaves.
template <typename Key>
absl::Status CopyRowsFromPages(const BPlusTreePages<Key>& pages, const Position* begin,
                               const uint64_t* offsets, size_t queries, uint64_t rows, Order order,
                               RowId* out, cudaStream_t stream);

}  // namespace cairn::gpu
