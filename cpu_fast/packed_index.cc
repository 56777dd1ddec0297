#include "cpu_fast/packed_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "cpu_fast/cell_directory.h"
#include "cpu_fast/fast_tree.h"
#include "cpu_fast/packed_search.h"
#include "index/batch_check.h"
#include "index/packed_leaves.h"
#include "index/prefetch.h"
#include "index/run_columns.h"
#include "index/topology.h"

namespace cairn {
namespace {

// Queries whose leaves are asked for together where the tree is the directory: few enough that the
// lines stay in the L1 cache until they are read.
constexpr size_t kTreeGroup = 256;

// How many times as many leaves cells are worth.
constexpr double kCellsWorth = 1.35;

template <typename Key>
class FixedWidthPackedIndex final : public PackedIndex {
 public:
  static absl::StatusOr<std::unique_ptr<PackedIndex>> Build(SortedRun run,
                                                            const PackedIndexOptions& options,
                                                            SimdLevel level) {
    std::unique_ptr<FixedWidthPackedIndex> index(new FixedWidthPackedIndex(std::move(run), level));
    if (absl::Status s = index->Fill(options); !s.ok()) return s;
    return index;
  }

  std::string description() const override {
    return absl::StrFormat("cpu:packed,bits=%d,directory=%s,simd=%s", leaves_.bits,
                           cells_.has_value() ? "cells" : "tree", SimdLevelName(level_));
  }
  uint64_t memory_bytes() const override {
    return leaves_.leaves.size() * sizeof(Leaf) +
           (cells_.has_value() ? cells_->memory_bytes()
                               : leaves_.separators.size() * sizeof(Key) + tree_.memory_bytes());
  }

  uint64_t huge_page_bytes() const override {
    return leaves_.leaves.huge_page_bytes() +
           (cells_.has_value() ? cells_->huge_page_bytes()
                               : leaves_.separators.huge_page_bytes() + tree_.huge_page_bytes());
  }

  absl::Status LowerBound(KeyBatch keys, absl::Span<Position> positions) const override {
    if (absl::Status s = Check(keys, positions.size(), "positions"); !s.ok()) return s;
    Search(FixedWidthColumn<Key>::Queries(keys), search_->lower_bound, search_->lower_bound_in_leaf,
           positions.data());
    return absl::OkStatus();
  }

  absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const override {
    if (absl::Status s = Check(keys, row_ids.size(), "row_ids"); !s.ok()) return s;
    Search(FixedWidthColumn<Key>::Queries(keys), search_->find_first, search_->find_first_in_leaf,
           row_ids.data());
    return absl::OkStatus();
  }

 private:
  using SearchFunction = typename PackedSearch<Key>::Search;

  FixedWidthPackedIndex(SortedRun run, SimdLevel level)
      : PackedIndex(std::move(run)), level_(level) {}

  absl::Status Fill(const PackedIndexOptions& options) {
    constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
    if (options.bits != 0 && options.bits != 16 && options.bits != 32 && options.bits != 64) {
      return absl::InvalidArgumentError(
          absl::StrFormat("leaves keep 16, 32 or 64 bits of a key, not %d", options.bits));
    }
    if (options.bits > kKeyBits) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "leaves cannot keep %d bits of keys that have %d", options.bits, kKeyBits));
    }
    const int threads = Topology::Get().cores();
    const absl::Span<const Key> keys = Keys();
    const int fewest = options.bits != 0 ? options.bits : ChooseLeafBits(keys, threads);
    Pack(fewest, options.directory, threads);
    if (options.directory != LeafDirectory::kTree && !cells_.has_value()) {
      // Wider keys have no blocks to respect, and so find cells more often; a few more leaves are
      // worth a directory of one line.
      if (options.bits == 0 && fewest < kKeyBits &&
          static_cast<double>(CountPackedLeaves(keys, kKeyBits, threads)) <=
              static_cast<double>(leaves_.leaves.size()) * kCellsWorth) {
        Pack(kKeyBits, options.directory, threads);
        if (!cells_.has_value()) Pack(fewest, LeafDirectory::kTree, threads);
      }
      if (options.directory == LeafDirectory::kCells && !cells_.has_value()) {
        return absl::FailedPreconditionError(
            "the keys are too few or too unevenly spread for directory=cells");
      }
    }
    view_.leaves = std::as_const(leaves_.leaves).data();
    view_.leaf_count = leaves_.leaves.size();
    if (cells_.has_value()) {
      leaves_.separators = AlignedBuffer<Key>();
      view_.cells = cells_->cells();
      view_.scale = cells_->scale();
    } else {
      tree_ = FastTreeNodes<Key>(std::as_const(leaves_.separators).span(), {}, PageBlocking::kNone,
                                 level_);
    }
    search_ =
        &PackedSearchFor<Key>(level_, leaves_.bits, !cells_.has_value() || view_.scale.Exact());
    return absl::OkStatus();
  }

  // Packs the run's entries, and makes their cells unless the tree is wanted.
  void Pack(int bits, LeafDirectory directory, int threads) {
    constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
    leaves_ = PackLeaves(Keys(), run().row_ids(), bits, threads);
    if (directory == LeafDirectory::kTree) return;
    cells_ = CellDirectory<Key>::Build(std::as_const(leaves_.separators).span(), bits < kKeyBits,
                                       threads);
  }

  void Search(absl::Span<const Key> queries, SearchFunction by_cells, SearchFunction in_leaf,
              uint32_t* out) const {
    if (cells_.has_value()) return by_cells(view_, queries, out);
    // The leaves of one group arrive while the next one goes down the tree.
    absl::Span<const Key> waiting;
    uint32_t* waiting_out = nullptr;
    for (size_t first = 0; first < queries.size(); first += kTreeGroup) {
      const absl::Span<const Key> group = queries.subspan(first, kTreeGroup);
      tree_.LowerBound(group, out + first);
      for (size_t i = 0; i < group.size(); ++i) {
        Prefetch(view_.leaves + out[first + i]);
      }
      in_leaf(view_, waiting, waiting_out);
      waiting = group;
      waiting_out = out + first;
    }
    in_leaf(view_, waiting, waiting_out);
  }

  absl::Status Check(const KeyBatch& keys, size_t outputs, std::string_view name) const {
    if (absl::Status s = CheckKind(run().kind(), keys); !s.ok()) return s;
    return CheckOutput(keys.size(), outputs, name);
  }
  absl::Span<const Key> Keys() const {
    if constexpr (sizeof(Key) == 4) {
      return run().u32();
    } else {
      return run().u64();
    }
  }

  const SimdLevel level_;
  PackedLeaves<Key> leaves_;  // without separators where there are cells
  std::optional<CellDirectory<Key>> cells_;
  FastTreeNodes<Key> tree_;  // over the separators, where there are no cells
  PackedView<Key> view_;
  const PackedSearch<Key>* search_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PackedIndex>> PackedIndex::Build(SortedRun run,
                                                                const PackedIndexOptions& options) {
  const absl::StatusOr<SimdLevel> level = ChooseSimdLevel(options.simd);
  if (!level.ok()) return level.status();
  switch (run.kind()) {
    case KeyKind::kU32:
      return FixedWidthPackedIndex<uint32_t>::Build(std::move(run), options, *level);
    case KeyKind::kU64:
      return FixedWidthPackedIndex<uint64_t>::Build(std::move(run), options, *level);
    case KeyKind::kBytes:
      break;
  }
  return absl::UnimplementedError(
      "cpu:packed takes keys of u32 or u64, not bytes: see cpu:strings");
}

}  // namespace cairn
