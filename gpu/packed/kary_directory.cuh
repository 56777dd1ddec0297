#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/packed/kary_directory.h"
#include "index/layout/wide_key.h"

namespace cairn::gpu {

// __ldcs of a key.
template <typename Key>
__device__ inline Key LoadStreaming(const Key* key) {
  return __ldcs(key);
}
template <>
__device__ inline WideKey LoadStreaming(const WideKey* key) {
  const ulonglong2 halves = __ldcs(reinterpret_cast<const ulonglong2*>(key));
  return WideKey{halves.y} << 64 | halves.x;
}

// A directory as kernels use it: each thread finds the leaves of its own keys.
template <typename Key>
struct KaryDirectoryView {
  using Node = KaryDirectoryNode;

  KaryDirectoryLevels<Key> levels;

  // Bytes of shared memory that Load fills.
  __host__ __device__ size_t shared_bytes() const {
    return levels.layout.top_slots() * sizeof(Key);
  }

  // Called by the whole block, which must synchronize afterwards.
  __device__ void Load(void* shared) const {
    for (size_t i = threadIdx.x; i < levels.layout.top_slots(); i += blockDim.x) {
      static_cast<Key*>(shared)[i] = levels.top[i];
    }
  }

  // The leaves of kQueries keys, whose reads are in flight together. With kStaged, `shared` must
  // have been filled by Load.
  template <bool kStaged, int kQueries>
  __device__ void FindLeaves(const Key (&keys)[kQueries], uint32_t (&leaves)[kQueries],
                             const void* shared) const {
    SearchTop(keys, leaves, kStaged ? static_cast<const Key*>(shared) : levels.top);
    for (int level = levels.layout.levels() - 1; level >= 0; --level) {
      Node nodes[kQueries];
#pragma unroll
      for (int q = 0; q < kQueries; ++q) nodes[q] = ReadNode(levels.nodes[level] + leaves[q]);
      typename Node::Ranks ranks[kQueries];
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        ranks[q] = nodes[q].Find(keys[q]);
        leaves[q] *= Node::kFanOut;
      }
      Settle(keys, leaves, ranks, levels.separators[level]);
#pragma unroll
      for (int q = 0; q < kQueries; ++q) leaves[q] += ranks[q].low;
    }
  }

 private:
  // The number of separators of the top that are less than each key. Random lookups in Eytzinger
  // order are spread over the banks of shared memory, unlike lookups in steps of powers of two.
  template <int kQueries>
  __device__ void SearchTop(const Key (&keys)[kQueries], uint32_t (&ranks)[kQueries],
                            const Key* top) const {
    uint32_t slots[kQueries];
#pragma unroll
    for (int q = 0; q < kQueries; ++q) slots[q] = 1;
    for (int level = levels.layout.top_levels(); level > 0; --level) {
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        slots[q] = 2 * slots[q] + (top[slots[q]] < keys[q] ? 1 : 0);
      }
    }
    const uint32_t leaves = static_cast<uint32_t>(levels.layout.top_slots());
#pragma unroll
    for (int q = 0; q < kQueries; ++q) ranks[q] = slots[q] - leaves;
  }

  // Makes ranks exact, by binary search among the separators in doubt; first[q] is the node's first
  // separator.
  template <int kQueries>
  __device__ static void Settle(const Key (&keys)[kQueries], const uint32_t (&first)[kQueries],
                                typename Node::Ranks (&ranks)[kQueries], const Key* separators) {
    for (;;) {
      bool settled = true;
#pragma unroll
      for (int q = 0; q < kQueries; ++q) settled = settled && ranks[q].low == ranks[q].high;
      if (settled) return;
      Key separator[kQueries];
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        if (ranks[q].low == ranks[q].high) continue;
        separator[q] = LoadStreaming(separators + first[q] + (ranks[q].low + ranks[q].high) / 2);
      }
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        if (ranks[q].low == ranks[q].high) continue;
        const uint32_t middle = (ranks[q].low + ranks[q].high) / 2;
        if (separator[q] < keys[q]) {
          ranks[q].low = middle + 1;
        } else {
          ranks[q].high = middle;
        }
      }
    }
  }

  __device__ static Node ReadNode(const Node* node) {
    const uint4* halves = reinterpret_cast<const uint4*>(node);
    const uint4 a = __ldg(halves), b = __ldg(halves + 1);
    return Node{a.x, {a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  }
};

template <typename Key>
KaryDirectoryView<Key> KaryDirectory<Key>::view() const {
  return {levels_};
}

}  // namespace cairn::gpu
