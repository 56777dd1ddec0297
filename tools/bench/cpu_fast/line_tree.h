#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"

namespace cairn::bench {

// The baseline for FastTree and packed leaves: a search tree whose nodes are one cache line,
// compared by one AVX-512 instruction, with contiguous levels and 32 queries in flight on each. The
// leaves are the keys themselves, which must be aligned to 64 bytes and outlive the tree.
template <typename Key>
class LineTree {
 public:
  // Whether this processor can search it.
  static bool Supported() { return __builtin_cpu_supports("avx512f") != 0; }

  explicit LineTree(absl::Span<const Key> keys);

  // positions[i] = the number of keys less than queries[i].
  void LowerBound(absl::Span<const Key> queries, Position* positions) const;

  uint64_t memory_bytes() const;

 private:
  static constexpr size_t kLine = 64 / sizeof(Key);

  absl::Span<const Key> keys_;
  std::vector<AlignedBuffer<Key>> levels_;  // from the root; the last one is the last line of keys
};

}  // namespace cairn::bench
