#include "cpu_fast/fast/compressed_tree.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "cpu_fast/fast/compressed_pages.h"
#include "cpu_fast/fast/compressed_search.h"
#include "cpu_fast/fast/fast_tree.h"
#include "index/machine/status_macros.h"
#include "index/query/host_index.h"

namespace cairn {
namespace {

// Queries that are searched first in the tree and then in the pages. This is many times the number
// in flight, but few enough that they and their page numbers stay in the L1 cache.
constexpr size_t kQueriesAtATime = 1024;

template <typename Key>
class CompressedTree final : public HostIndex {
 public:
  CompressedTree(SortedRun run, SimdLevel level)
      : HostIndex(std::move(run)),
        level_(level),
        pages_(this->run().template keys<Key>(), this->run().row_ids()),
        tree_(pages_.minima(), {}, PageBlocking::kNone, level),
        search_(CompressedSearchFor<Key>(level)) {}

  std::string description() const override {
    return absl::StrFormat("cpu:fast,compressed,simd=%s", SimdLevelName(level_));
  }
  uint64_t memory_bytes() const override { return pages_.memory_bytes() + tree_.memory_bytes(); }
  uint64_t huge_page_bytes() const override {
    return pages_.huge_page_bytes() + tree_.huge_page_bytes();
  }

 private:
  void LowerBound(KeyBatch keys, Position* positions) const override {
    Search(search_.lower_bound, keys.as<Key>(), positions);
  }
  void FindFirst(KeyBatch keys, RowId* row_ids) const override {
    Search(search_.find_first, keys.as<Key>(), row_ids);
  }

  template <typename SearchPages>
  void Search(SearchPages search_pages, absl::Span<const Key> queries, uint32_t* out) const {
    for (size_t first = 0; first < queries.size(); first += kQueriesAtATime) {
      const absl::Span<const Key> chunk = queries.subspan(first, kQueriesAtATime);
      tree_.LowerBound(chunk, out + first);
      search_pages(pages_.view(), chunk, out + first);
    }
  }

  const SimdLevel level_;
  const CompressedPages<Key> pages_;
  const FastTreeNodes<Key> tree_;  // over the pages' minima
  const CompressedSearch<Key>& search_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeCompressedTree(SortedRun run,
                                                                 std::optional<SimdLevel> simd) {
  ASSIGN_OR_RETURN(const SimdLevel level, ChooseSimdLevel(simd));
  switch (run.kind()) {
    case PhysicalType::kU32:
      return std::make_unique<CompressedTree<uint32_t>>(std::move(run), level);
    case PhysicalType::kU64:
      return std::make_unique<CompressedTree<uint64_t>>(std::move(run), level);
    case PhysicalType::kBytes:
      break;
  }
  return absl::UnimplementedError(
      "cpu:fast,compressed: expected u32 or u64 keys, got byte strings; use cpu:strings");
}

}  // namespace cairn
