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
  // 19.3 ns (u64), with page=2m 20.4 and 34.6, with page=4k 21.2 and 35.3. The addresses of blocks
  // cost more than the pages they save. Blocks are for memory whose pages are dear.
  PageBlocking page = PageBlocking::kNone;
  // The instruction set; none: DefaultSimdLevel().
  std::optional<SimdLevel> simd;
};

// A static search tree over a run of 32- or 64-bit keys ("cpu:fast"), after Kim et al., FAST
// (SIGMOD 2010): nodes of one cache line are compared at once, and a batch's queries go down
// together, each prefetching its next line while the others take their step. The leaves are the
// run's own lines of keys; the tree above them takes 0.27 bytes a 32-bit key, 1.14 a 64-bit key.
// See TreeLayout for the shape.
//
// Builds on all cores. Unimplemented for keys of bytes, Unavailable for a SIMD level that the
// processor lacks, InvalidArgument for a CAIRN_SIMD that names none. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeFastTree(SortedRun run,
                                                           const FastTreeOptions& options = {});

// The inner nodes over sorted keys, and their search; what FAST trees and StringSamples are made
// of. The keys stay the caller's, who keeps them in place, at a multiple of 64 bytes and readable
// up to the next one behind their end.
template <typename Key>
class FastTreeNodes {
 public:
  FastTreeNodes() = default;
  // Builds on all cores. `row_ids` may be empty where FindFirst is not called. `level` must be
  // supported. Throws std::bad_alloc.
  FastTreeNodes(absl::Span<const Key> keys, absl::Span<const RowId> row_ids, PageBlocking page,
                SimdLevel level);
  // Over nodes() of another such object, in level order, which are the caller's likewise: safe to
  // search if AreSafe, and right if they are of these keys. Throws std::bad_alloc.
  FastTreeNodes(absl::Span<const Key> keys, absl::Span<const Key> nodes, SimdLevel level);
  FastTreeNodes(FastTreeNodes&&) noexcept = default;
  FastTreeNodes& operator=(FastTreeNodes&&) noexcept = default;

  // positions[i] = the number of keys less than queries[i]. As many positions as queries.
  void LowerBound(absl::Span<const Key> queries, Position* positions) const;
  // row_ids[i] = the first row of queries[i], or kNoRow.
  void FindFirst(absl::Span<const Key> queries, RowId* row_ids) const;

  // The inner nodes, which start at a multiple of 64 bytes; plain numbers, to be stored.
  absl::Span<const Key> nodes() const {
    return {reinterpret_cast<const Key*>(view_.nodes), view_.layout.lines() * Layout::kLineKeys};
  }
  // How many numbers that is for so many keys, without page blocks.
  static size_t NodeCount(size_t keys) {
    return Layout(keys, PageBlocking::kNone).lines() * Layout::kLineKeys;
  }
  // Whether a search down NodeCount(keys) numbers of any origin reads nothing but them, and ends in
  // one of the keys' lines. Reads them all, on up to `threads` threads. Throws std::bad_alloc.
  static bool AreSafe(size_t keys, absl::Span<const Key> nodes, int threads);

  uint64_t memory_bytes() const { return memory_.size() * sizeof(Key); }
  uint64_t huge_page_bytes() const { return memory_.huge_page_bytes(); }

 private:
  using Layout = TreeLayout<Key>;

  // Pads the last line of the keys into `line`.
  void SetLastLine(absl::Span<const Key> keys, Key* line);

  AlignedBuffer<Key> memory_;  // the last leaf, padded, on a page of its own; then the nodes
  FastTreeView<Key> view_;
  const FastTreeSearch<Key>* search_ = nullptr;
};

}  // namespace cairn
