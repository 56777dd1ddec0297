#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/fast_tree.h"
#include "cpu_fast/simd_level.h"
#include "index/aligned_buffer.h"

namespace cairn {

// Exact search over a run of byte strings ("cpu:strings").
//
// Of every kSample-th key, the eight bytes behind the prefix that all keys share are kept, as an
// integer of the same order, under a FastTree. A query's own eight bytes thus leave it the keys
// between two samples, or those of all samples that tie with it. A binary search over the run
// itself ends there. It skips the bytes that the query is known to share with the keys on both
// sides (Manber and Myers, Suffix arrays, 1993), so that a long common prefix is read once, and a
// batch's searches advance together and prefetch first the offset, then the bytes of the key that
// each compares next. Any set of keys costs at most what binary search costs; keys that differ
// early behind their common prefix cost far less.
//
// Takes 8 / kSample bytes a key, plus a seventh of that for the tree.
class StringSearch final : public OrderedIndex {
 public:
  static constexpr size_t kSample = 8;

  // Builds on all cores. Unimplemented for keys that are not bytes; for `level` see
  // FastTreeOptions::simd. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<StringSearch>> Build(
      SortedRun run, std::optional<SimdLevel> level = std::nullopt);

  std::string description() const override;
  uint64_t memory_bytes() const override;
  absl::Status LowerBound(KeyBatch keys, absl::Span<Position> positions) const override;
  absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const override;
  absl::Status Contains(KeyBatch keys, absl::Span<bool> found) const override;

 private:
  struct Group;

  StringSearch(SortedRun run, SimdLevel level);

  // Searches a group's queries: sets its positions and whether each key is there.
  void Search(absl::Span<const std::string_view> queries, Group* group) const;
  // Narrows each query to the positions between samples.
  void NarrowBySamples(absl::Span<const std::string_view> queries, Group* group) const;
  // Ends the search within those.
  void SearchRun(absl::Span<const std::string_view> queries, Group* group) const;
  // Searches a batch, calling prefetch(position), then emit(number, position, found) for each
  // query.
  template <typename Prefetch, typename Emit>
  void ForEach(absl::Span<const std::string_view> queries, Prefetch prefetch, Emit emit) const;

  SimdLevel level_;
  std::string_view common_;          // the prefix that all keys share; in the run's heap
  AlignedBuffer<uint64_t> samples_;  // of keys 0, kSample, 2 kSample ...
  FastTreeNodes<uint64_t> tree_;     // over samples_
};

}  // namespace cairn
