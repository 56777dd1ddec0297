#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "gpu/btree/b_plus_tree.h"

namespace cairn::gpu {

// The entries that a traversal visited, in device memory, by position.
template <typename Key>
struct Visits {
  Key* keys;
  RowId* row_ids;
  uint32_t* tickets;  // how many visits had begun before
  uint32_t* counter;  // 0
};

// Takes notes of every entry, on the default stream.
template <typename Key>
absl::Status VisitInParallel(const BPlusTree<Key>& tree, Visits<Key> visits);
template <typename Key>
absl::Status VisitInOrder(const BPlusTree<Key>& tree, Visits<Key> visits);

}  // namespace cairn::gpu
