#include "test/gpu/btree/b_plus_tree_visits.h"

#include "gpu/btree/b_plus_tree_visit.cuh"

namespace cairn::gpu {
namespace {

template <typename Key>
struct Note {
  Visits<Key> visits;

  __device__ void operator()(Position position, Key key, RowId row_id) const {
    visits.keys[position] = key;
    visits.row_ids[position] = row_id;
    visits.tickets[position] = atomicAdd(visits.counter, 1u);
  }
};

}  // namespace

template <typename Key>
absl::Status VisitInParallel(const BPlusTree<Key>& tree, Visits<Key> visits) {
  return ForEachEntry(tree, Note<Key>{visits}, nullptr);
}

template <typename Key>
absl::Status VisitInOrder(const BPlusTree<Key>& tree, Visits<Key> visits) {
  return ForEachEntryInOrder(tree, Note<Key>{visits}, nullptr);
}

template absl::Status VisitInParallel(const BPlusTree<uint32_t>&, Visits<uint32_t>);
template absl::Status VisitInParallel(const BPlusTree<uint64_t>&, Visits<uint64_t>);
template absl::Status VisitInOrder(const BPlusTree<uint32_t>&, Visits<uint32_t>);
template absl::Status VisitInOrder(const BPlusTree<uint64_t>&, Visits<uint64_t>);

}  // namespace cairn::gpu
