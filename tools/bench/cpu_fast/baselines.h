#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"

namespace cairn::bench {

// Binary search in Eytzinger order (Khuong and Morin, Array layouts for comparison-based searching,
// 2017), a group of queries in step: the strongest simple competitor of a search tree.
template <typename Key>
class Eytzinger {
 public:
  explicit Eytzinger(absl::Span<const Key> keys) : keys_(keys.size() + 1), ranks_(keys.size() + 1) {
    size_t next = 0;
    Fill(keys, 1, &next);
    ranks_[0] = static_cast<Position>(keys.size());
    keys_[0] = 0;
    while ((size_t{2} << levels_) - 1 <= keys.size()) ++levels_;
  }

  // The number of keys less than each query.
  void LowerBound(absl::Span<const Key> queries, Position* positions) const {
    constexpr size_t kGroup = 64;
    for (size_t first = 0; first < queries.size(); first += kGroup) {
      const size_t count = std::min(kGroup, queries.size() - first);
      uint64_t at[kGroup];
      for (size_t j = 0; j < count; ++j) at[j] = 1;
      for (int level = 0; level <= levels_; ++level) {
        for (size_t j = 0; j < count; ++j) {
          // Below the last level all paths go right, which does not affect the answer.
          const bool below = at[j] >= keys_.size();
          const bool less = keys_[below ? 0 : at[j]] < queries[first + j];
          at[j] = 2 * at[j] + (below | less);
          Prefetch(keys_.data() + at[j]);
        }
      }
      for (size_t j = 0; j < count; ++j) {
        // The answer is the last node at which the path went left.
        positions[first + j] = ranks_[at[j] >> __builtin_ffsll(static_cast<int64_t>(~at[j]))];
      }
    }
  }

  uint64_t memory_bytes() const { return keys_.size() * (sizeof(Key) + sizeof(Position)); }

 private:
  void Fill(absl::Span<const Key> keys, size_t node, size_t* next) {
    if (node >= keys_.size()) return;
    Fill(keys, 2 * node, next);
    ranks_[node] = static_cast<Position>(*next);
    keys_[node] = keys[(*next)++];
    Fill(keys, 2 * node + 1, next);
  }

  AlignedBuffer<Key> keys_;
  AlignedBuffer<Position> ranks_;
  int levels_ = 0;
};

template <typename Key>
absl::btree_map<Key, RowId> MakeBtree(absl::Span<const Key> keys, absl::Span<const RowId> rows) {
  absl::btree_map<Key, RowId> map;
  for (size_t i = 0; i < keys.size(); ++i) map.emplace_hint(map.end(), keys[i], rows[i]);
  return map;
}

}  // namespace cairn::bench
