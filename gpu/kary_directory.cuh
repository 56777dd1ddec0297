#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kary_directory.h"

namespace cairn::gpu {

// A directory for kernels: a thread finds the leaves of its own keys.
template <typename Key>
struct KaryDirectoryView {
  using Node = KaryDirectoryNode;
  static constexpr uint32_t kMostInTop = KaryDirectory<Key>::kTopBytes / sizeof(Key);

  KaryDirectoryLevels<Key> levels;

  // Bytes of shared memory that Load fills.
  __host__ __device__ size_t shared_bytes() const { return levels.layout.top() * sizeof(Key); }

  // By the whole block, which must wait for itself afterwards.
  __device__ void Load(void* shared) const {
    const Key* top = levels.separators[levels.layout.levels()];
    for (size_t i = threadIdx.x; i < levels.layout.top(); i += blockDim.x) {
      static_cast<Key*>(shared)[i] = top[i];
    }
  }

  // The leaves of kQueries keys, whose reads are in flight together. `shared` was filled by Load,
  // or is null.
  template <int kQueries>
  __device__ void FindLeaves(const Key (&keys)[kQueries], uint32_t (&leaves)[kQueries],
                             const void* shared) const {
    if (shared != nullptr) {
      SearchTop(keys, leaves, static_cast<const Key*>(shared));
    } else {
      SearchTop(keys, leaves, levels.separators[levels.layout.levels()]);
    }
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
  // The number of keys of the top that are less than each key. After the first step, what is left
  // is of 2^n - 1 keys, so that the steps are constants.
  template <int kQueries>
  __device__ void SearchTop(const Key (&keys)[kQueries], uint32_t (&ranks)[kQueries],
                            const Key* top) const {
    const uint32_t size = static_cast<uint32_t>(levels.layout.top());
    const uint32_t half = size == 0 ? 0 : 1u << (31 - __clz(static_cast<int>(size)));
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      ranks[q] = half != 0 && top[half - 1] < keys[q] ? size - half + 1 : 0;
    }
#pragma unroll
    for (uint32_t step = kMostInTop / 2; step > 0; step /= 2) {
      if (step >= half) continue;
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        if (top[ranks[q] + step - 1] < keys[q]) ranks[q] += step;
      }
    }
  }

  // Makes ranks exact, by binary search among the separators in doubt, of which first[q] is the
  // node's first.
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
        separator[q] = __ldcs(separators + first[q] + (ranks[q].low + ranks[q].high) / 2);
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
