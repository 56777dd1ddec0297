#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "cpu_fast/simd/simd_level.h"
#include "cpu_fast/strings/string_samples.h"
#include "index/query/host_index.h"

namespace cairn {

// Exact search over a run of byte strings ("cpu:strings").
//
// StringSamples finds the two samples of the run that enclose a query. A binary search over the
// keys between them completes the search. It skips the bytes that the query is known to share with
// the keys on both sides, so that a long common prefix is read only once (Manber and Myers, Suffix
// arrays, 1993). The searches of a group of queries advance together, and prefetch first the offset
// and then the bytes of the key that each compares next. For any set of keys, this costs at most a
// few probes more than binary search.
//
// Takes 1.7 bytes per key, plus up to 2.3 if many keys share prefixes.
class StringSearch final : public HostIndex {
 public:
  // Builds on all cores. For `level` see FastTreeOptions::simd. Errors: Unimplemented if keys are
  // not byte strings. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<OrderedIndex>> Build(
      SortedRun run, std::optional<SimdLevel> level = std::nullopt);

  std::string description() const override;
  uint64_t memory_bytes() const override;
  uint64_t huge_page_bytes() const override { return samples_.huge_page_bytes(); }

 private:
  void LowerBound(KeyBatch keys, Position* positions) const override;
  void FindFirst(KeyBatch keys, RowId* row_ids) const override;
  void Contains(KeyBatch keys, bool* found) const override;

  StringSearch(SortedRun run, SimdLevel level)
      : HostIndex(std::move(run)), level_(level), samples_(this->run().bytes(), level) {}

  // Searches a group's queries. Sets found[j] if the key of query j exists, and group->low[j] to
  // its lower bound.
  void Search(absl::Span<const std::string_view> queries, StringGroup* group, bool* found) const;
  // Searches a batch. Calls prefetch(position) and then emit(number, position, found) for each
  // query.
  template <typename Prefetch, typename Emit>
  void ForEach(absl::Span<const std::string_view> queries, Prefetch prefetch, Emit emit) const;

  SimdLevel level_;
  StringSamples samples_;
};

}  // namespace cairn
