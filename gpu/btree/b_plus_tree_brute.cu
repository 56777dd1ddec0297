#include <algorithm>
#include <limits>

#include "gpu/btree/b_plus_tree_pages.cuh"
#include "gpu/btree/b_plus_tree_search.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"

// Brute-force search (Kaczmarek 2012, section 2.3): one thread per position in a leaf, which
// detects the lower bound of the key by comparing it with the position's key and the key before. As
// in the paper, for comparison with the other methods.
namespace cairn::gpu {
namespace {

constexpr int kCompareThreads = 256;
constexpr int kQueriesAtOnce = 512;  // in shared memory

void __device__ SetResult(Operation query, void* results, size_t i, uint32_t answer) {
  if (query == Operation::kContains) {
    static_cast<bool*>(results)[i] = answer != 0;
  } else {
    static_cast<uint32_t*>(results)[i] = answer;
  }
}

// The results for keys that are greater than all keys of the tree.
__global__ void AnswerAsBehindAll(Operation query, uint32_t entries, void* results, size_t size) {
  ForEachIndex(size, [=](size_t i) {
    SetResult(query, results, i,
              query == Operation::kFindFirst  ? kNoRow
              : query == Operation::kContains ? 0
                                              : entries);
  });
}

// An entry, with the key before it.
template <typename Key>
struct EntryInPlace {
  Key before, key;
  bool first;  // there is no key before it
  Position position;
  RowId row_id;
};

template <typename Key, typename Pages>
__device__ bool LoadEntry(const Pages& pages, size_t place, EntryInPlace<Key>* entry) {
  const auto ordinal = static_cast<uint32_t>(place >> pages.order_bits);
  const uint32_t slot = static_cast<uint32_t>(place) & (pages.order() - 1);
  const uint32_t leaf = pages.LeafAt(ordinal);
  if (slot >= pages.LeafSize(leaf)) return false;
  entry->key = pages.Keys(leaf)[slot];
  entry->row_id = pages.Rows(leaf)[slot];
  entry->position = pages.FirstPosition(leaf) + slot;
  entry->first = entry->position == 0;
  if (slot > 0) {
    entry->before = pages.Keys(leaf)[slot - 1];
  } else if (!entry->first) {
    const uint32_t left = pages.LeafAt(ordinal - 1);
    entry->before = pages.Keys(left)[pages.LeafSize(left) - 1];
  }
  return true;
}

template <typename Key, typename Pages>
__global__ void __launch_bounds__(kCompareThreads)
    CompareAll(const __grid_constant__ Pages pages, Operation query, const Key* queries,
               size_t size, void* results) {
  __shared__ Key sought[kQueriesAtOnce];
  const bool upper = query == Operation::kUpperBound;
  const size_t places = size_t{pages.leaf_count()} << pages.order_bits;
  for (size_t from = size_t{blockIdx.y} * kQueriesAtOnce; from < size;
       from += size_t{gridDim.y} * kQueriesAtOnce) {
    const int count = static_cast<int>(min(size_t{kQueriesAtOnce}, size - from));
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kCompareThreads) {
      sought[i] = queries[from + i];
    }
    __syncthreads();
    const size_t stride = size_t{gridDim.x} * kCompareThreads;
    for (size_t place = size_t{blockIdx.x} * kCompareThreads + threadIdx.x; place < places;
         place += stride) {
      EntryInPlace<Key> entry;
      if (!LoadEntry(pages, place, &entry)) continue;
      for (int i = 0; i < count; ++i) {
        const Key key = sought[i];
        const bool here = upper ? key < entry.key && (entry.first || entry.before <= key)
                                : key <= entry.key && (entry.first || entry.before < key);
        if (!here) continue;
        uint32_t answer = entry.position;
        if (query == Operation::kFindFirst) answer = entry.key == key ? entry.row_id : kNoRow;
        if (query == Operation::kContains) answer = entry.key == key;
        SetResult(query, results, from + i, answer);
      }
    }
  }
}

}  // namespace

template <typename Key>
absl::Status SearchAllLeaves(const BPlusTreePages<Key>& pages, Operation query, DeviceKeys keys,
                             void* results, cudaStream_t stream) {
  CAIRN_RETURN_IF_LAUNCH_FAILS("AnswerAsBehindAll", SimpleShape(keys.size()), stream,
                               AnswerAsBehindAll, query, pages.entries(), results, keys.size());
  return VisitPages(pages, [&](const auto& view) -> absl::Status {
    const size_t chunks = (keys.size() + kQueriesAtOnce - 1) / kQueriesAtOnce;
    const dim3 blocks(static_cast<unsigned>(SimpleBlocks(pages.leaves.size())),
                      static_cast<unsigned>(std::min<size_t>(chunks, 64)));
    CAIRN_RETURN_IF_LAUNCH_FAILS("CompareAll", LaunchShape{blocks, kCompareThreads}, stream,
                                 CompareAll<Key, std::decay_t<decltype(view)>>, view, query,
                                 static_cast<const Key*>(keys.data()), keys.size(), results);
    return absl::OkStatus();
  });
}

const char* BPlusTreeMethodName(BPlusTreeMethod method) {
  switch (method) {
    case BPlusTreeMethod::kBinary:
      return "binary";
    case BPlusTreeMethod::kCombined:
      return "combined";
    case BPlusTreeMethod::kBrute:
      return "brute";
    case BPlusTreeMethod::kMultiple:
      break;
  }
  return "multiple";
}

template absl::Status SearchAllLeaves(const BPlusTreePages<uint32_t>&, Operation, DeviceKeys, void*,
                                      cudaStream_t);
template absl::Status SearchAllLeaves(const BPlusTreePages<uint64_t>&, Operation, DeviceKeys, void*,
                                      cudaStream_t);

}  // namespace cairn::gpu
