#include "cpu_fast/fast/compressed_tree.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "cpu_fast/fast/compressed_pages.h"
#include "cpu_fast/fast/compressed_search.h"
#include "cpu_fast/fast/fast_tree.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// Queries that go through the tree, and then through the pages, together: many times the number in
// flight, few enough that they and their pages' numbers stay in the L1 cache.
constexpr size_t kChunk = 1024;

template <typename Key>
class FixedWidthCompressedTree final : public CompressedTree {
  using Column = FixedWidthColumn<Key>;

 public:
  FixedWidthCompressedTree(SortedRun run, absl::Span<const Key> keys, SimdLevel level)
      : CompressedTree(std::move(run)),
        level_(level),
        pages_(keys, this->run().row_ids()),
        tree_(pages_.minima(), {}, PageBlocking::kNone, level),
        search_(CompressedSearchFor<Key>(level)) {}

  std::string description() const override {
    return absl::StrFormat("cpu:fast,compressed,simd=%s", SimdLevelName(level_));
  }
  uint64_t memory_bytes() const override { return pages_.memory_bytes() + tree_.memory_bytes(); }
  uint64_t huge_page_bytes() const override {
    return pages_.huge_page_bytes() + tree_.huge_page_bytes();
  }

  absl::Status LowerBound(KeyBatch keys, absl::Span<Position> positions) const override {
    RETURN_IF_ERROR(Check(keys, positions.size(), "positions"));
    if (run().empty()) std::fill(positions.begin(), positions.end(), 0);
    Search(search_.lower_bound, Column::Queries(keys), positions);
    return absl::OkStatus();
  }

  absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const override {
    RETURN_IF_ERROR(Check(keys, row_ids.size(), "row_ids"));
    if (run().empty()) std::fill(row_ids.begin(), row_ids.end(), kNoRow);
    Search(search_.find_first, Column::Queries(keys), row_ids);
    return absl::OkStatus();
  }

 private:
  absl::Status Check(const KeyBatch& keys, size_t outputs, std::string_view name) const {
    RETURN_IF_ERROR(CheckKind(run().kind(), keys));
    return CheckOutput(keys.size(), outputs, name);
  }

  template <typename SearchPages>
  void Search(SearchPages search_pages, absl::Span<const Key> queries,
              absl::Span<uint32_t> out) const {
    if (run().empty()) return;
    for (size_t first = 0; first < queries.size(); first += kChunk) {
      const absl::Span<const Key> chunk = queries.subspan(first, kChunk);
      tree_.LowerBound(chunk, out.data() + first);
      search_pages(pages_.view(), chunk, out.data() + first);
    }
  }

  const SimdLevel level_;
  const CompressedPages<Key> pages_;
  const FastTreeNodes<Key> tree_;  // over the pages' minima
  const CompressedSearch<Key>& search_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CompressedTree>> CompressedTree::Build(
    SortedRun run, std::optional<SimdLevel> simd) {
  ASSIGN_OR_RETURN(const SimdLevel level, ChooseSimdLevel(simd));
  switch (run.kind()) {
    case KeyKind::kU32: {
      const absl::Span<const uint32_t> keys = run.u32();
      return std::make_unique<FixedWidthCompressedTree<uint32_t>>(std::move(run), keys, level);
    }
    case KeyKind::kU64: {
      const absl::Span<const uint64_t> keys = run.u64();
      return std::make_unique<FixedWidthCompressedTree<uint64_t>>(std::move(run), keys, level);
    }
    case KeyKind::kBytes:
      break;
  }
  return absl::UnimplementedError(
      "cpu:fast,compressed takes keys of u32 or u64, not bytes: see cpu:strings");
}

}  // namespace cairn
