#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/fast/fast_tree_search.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/layout/tree_layout.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

struct FastTreeOptions {
  // Level order is the fastest: PointLookup/cpu:fast at n:24, positions, took 10.6 ns (u32) and
  // 19.3 ns (u64); with page=2m 20.4 and 34.6 ns, with page=4k 21.2 and 35.3 ns. Computing the
  // addresses of blocks costs more than the saved page accesses. Blocks are for memory with
  // expensive page accesses.
  PageBlocking page = PageBlocking::kNone;
  // The instruction set. If empty, DefaultSimdLevel() is used.
  std::optional<SimdLevel> simd;
};

// Builds a static search tree over a run of 32- or 64-bit keys ("cpu:fast"), after Kim et al., FAST
// (SIGMOD 2010). A node is one cache line, compared at once. The queries of a batch descend
// together: each prefetches its next line while the others take their steps. The leaves are the
// run's own key lines. The tree above them takes 0.27 bytes per 32-bit key and 1.14 bytes per
// 64-bit key. See TreeLayout for the shape.
//
// Builds on all cores. Errors: Unimplemented for byte-string keys; Unavailable for a SIMD level
// that the processor lacks; InvalidArgument if CAIRN_SIMD names no level. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeFastTree(SortedRun run,
                                                           const FastTreeOptions& options = {});

// The inner nodes over sorted keys and their search, the building block of FAST trees and
// StringSamples. The caller owns the keys and must keep them in place. They must start at a
// multiple of 64 bytes and be readable up to the next multiple of 64 past their end.
template <typename Key>
class FastTreeNodes {
 public:
  FastTreeNodes() = default;
  // Builds on all cores. `row_ids` may be empty if FindFirst is not called. `level` must be
  // supported. Throws std::bad_alloc.
  FastTreeNodes(absl::Span<const Key> keys, absl::Span<const RowId> row_ids, PageBlocking page,
                SimdLevel level);
  // Uses nodes() of another such object, in level order. The caller owns them and must keep them in
  // place, like the keys. Searches are safe if AreSafe, and correct if the nodes were built from
  // these keys. Throws std::bad_alloc.
  FastTreeNodes(absl::Span<const Key> keys, absl::Span<const Key> nodes, SimdLevel level);
  FastTreeNodes(FastTreeNodes&&) noexcept = default;
  FastTreeNodes& operator=(FastTreeNodes&&) noexcept = default;

  // positions[i] = the number of keys less than queries[i]. Both spans must have the same length.
  void LowerBound(absl::Span<const Key> queries, Position* positions) const;
  // row_ids[i] = the first row of queries[i], or kNoRow.
  void FindFirst(absl::Span<const Key> queries, RowId* row_ids) const;

  // The inner nodes as plain integers, which can be stored in a file. They start at a multiple of
  // 64 bytes.
  absl::Span<const Key> nodes() const {
    return {reinterpret_cast<const Key*>(view_.nodes), view_.layout.lines() * Layout::kLineKeys};
  }
  // The size of nodes() of a tree over `keys` keys without page blocks.
  static size_t NodeCount(size_t keys) {
    return Layout(keys, PageBlocking::kNone).lines() * Layout::kLineKeys;
  }
  // Whether a search of these nodes, whatever their origin, reads no memory outside them and ends
  // in one of the lines of `keys` keys. Requires NodeCount(keys) nodes. Reads them all, on up to
  // `threads` threads. Throws std::bad_alloc.
  static bool AreSafe(size_t keys, absl::Span<const Key> nodes, int threads);

  uint64_t memory_bytes() const { return memory_.size() * sizeof(Key); }
  uint64_t huge_page_bytes() const { return memory_.huge_page_bytes(); }

 private:
  using Layout = TreeLayout<Key>;

  // Copies the last line of the keys to `line` and pads it.
  void SetLastLine(absl::Span<const Key> keys, Key* line);

  AlignedBuffer<Key> memory_;  // the last leaf, padded, on a page of its own, and then the nodes
  FastTreeView<Key> view_;
  const FastTreeSearch<Key>* search_ = nullptr;
};

}  // namespace cairn
