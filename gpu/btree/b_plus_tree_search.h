#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/btree/b_plus_tree_pages.h"

namespace cairn::gpu {

// How a page's keys are compared: Kaczmarek (2012), section 2.3.
enum class BPlusTreeMethod : uint8_t {
  kBinary,    // one thread per query, by binary search
  kCombined,  // a group of lanes per query, which read the whole page together
  kBrute,     // compares every key of every leaf, without inner pages
  kMultiple,  // sixteen threads per query, all executing the same binary search
};
// "binary", "combined", "brute", "multiple".
const char* BPlusTreeMethodName(BPlusTreeMethod method);

// DeviceIndex::Search over pages.
template <typename Key>
absl::Status SearchPages(const BPlusTreePages<Key>& pages, BPlusTreeMethod method, Operation query,
                         DeviceKeys keys, void* results, cudaStream_t stream);

// The same by kBrute; called by SearchPages.
template <typename Key>
absl::Status SearchAllLeaves(const BPlusTreePages<Key>& pages, Operation query, DeviceKeys keys,
                             void* results, cudaStream_t stream);

}  // namespace cairn::gpu
