#include "cpu_fast/packed/packed_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "cpu_fast/fast/fast_tree.h"
#include "cpu_fast/packed/cell_directory.h"
#include "cpu_fast/packed/packed_search.h"
#include "index/layout/packed_leaves.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/host_index.h"

namespace cairn {
namespace {

// Queries whose leaves are asked for together where the tree is the directory: few enough that the
// lines stay in the L1 cache until they are read.
constexpr size_t kTreeGroup = 256;

// How many times as many leaves cells are worth.
constexpr double kCellsWorth = 1.45;

template <typename Key>
class PackedIndex final : public HostIndex {
 public:
  static absl::StatusOr<std::unique_ptr<OrderedIndex>> Build(SortedRun run,
                                                             const PackedIndexOptions& options,
                                                             SimdLevel level) {
    std::unique_ptr<PackedIndex> index(new PackedIndex(std::move(run), level));
    RETURN_IF_ERROR(index->Fill(options));
    return index;
  }

  std::string description() const override {
    return absl::StrFormat("cpu:packed,bits=%d,directory=%s,simd=%s", bits_,
                           cells_.has_value() ? "cells" : "tree", SimdLevelName(level_));
  }
  uint64_t memory_bytes() const override {
    return leaves_.size() * sizeof(Leaf) +
           (cells_.has_value() ? cells_->memory_bytes()
                               : separators_.size() * sizeof(Key) + tree_.memory_bytes());
  }

  uint64_t huge_page_bytes() const override {
    return leaves_.huge_page_bytes() +
           (cells_.has_value() ? cells_->huge_page_bytes()
                               : separators_.huge_page_bytes() + tree_.huge_page_bytes());
  }

 private:
  void LowerBound(KeyBatch keys, Position* positions) const override {
    Search(keys.as<Key>(), search_->lower_bound, search_->lower_bound_in_leaf, positions);
  }
  void FindFirst(KeyBatch keys, RowId* row_ids) const override {
    Search(keys.as<Key>(), search_->find_first, search_->find_first_in_leaf, row_ids);
  }

  using SearchFunction = typename PackedSearch<Key>::Search;

  PackedIndex(SortedRun run, SimdLevel level) : HostIndex(std::move(run)), level_(level) {}

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
    absl::StatusOr<LeafCuts<Key>> cuts = Cut(fewest, options.directory, threads);
    if (!cuts.ok()) return cuts.status();
    const auto cells_suit = [&] {
      return cells_.has_value() && cells_->groups().size() <= CellDirectory<Key>::kFewGroups;
    };
    if (options.directory != LeafDirectory::kTree && !cells_suit()) {
      // Wider keys have no blocks to respect, and so find cells more often, and of fewer groups; a
      // few more leaves are worth a directory of one line.
      if (options.bits == 0 && fewest < kKeyBits &&
          static_cast<double>(CountPackedLeaves(keys, kKeyBits, threads)) <=
              static_cast<double>(cuts->leaves) * kCellsWorth) {
        *cuts = LeafCuts<Key>();
        cuts = Cut(kKeyBits, options.directory, threads);
        if (cuts.ok() && !cells_suit()) {
          *cuts = LeafCuts<Key>();
          cuts = Cut(fewest, options.directory, threads);
        }
        if (!cuts.ok()) return cuts.status();
      }
      if (options.directory == LeafDirectory::kCells && !cells_.has_value()) {
        return absl::FailedPreconditionError(
            "the keys are too few or too unevenly spread for directory=cells");
      }
    }
    // Leaves are filled once it is settled which, as they are most of what an index takes.
    bits_ = cuts->bits;
    if (cells_.has_value()) {
      cuts->separators = AlignedBuffer<Key>();
      view_.cells = cells_->cells();
      view_.groups = cells_->groups();
      view_.bounds = cells_->bounds();
      view_.far_bounds = cells_->far_bounds();
    }
    leaves_ = FillLeaves(keys, run().row_ids(), *cuts, threads);
    view_.leaves = std::as_const(leaves_).data();
    view_.leaf_count = leaves_.size();
    if (!cells_.has_value()) {
      separators_ = std::move(cuts->separators);
      tree_ =
          FastTreeNodes<Key>(std::as_const(separators_).span(), {}, PageBlocking::kNone, level_);
    }
    search_ = &PackedSearchFor<Key>(level_, bits_, !cells_.has_value() || cells_->exact());
    return absl::OkStatus();
  }

  // Cuts the run's entries into leaves, and makes cells of these unless the tree is wanted.
  absl::StatusOr<LeafCuts<Key>> Cut(int bits, LeafDirectory directory, int threads) {
    constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
    absl::StatusOr<LeafCuts<Key>> cuts = CutLeaves(Keys(), bits, threads);
    if (cuts.ok() && directory != LeafDirectory::kTree) {
      cells_ = CellDirectory<Key>::Build(std::as_const(cuts->separators).span(), bits < kKeyBits,
                                         threads);
    }
    return cuts;
  }

  void Search(absl::Span<const Key> queries, SearchFunction by_cells, SearchFunction in_leaf,
              uint32_t* out) const {
    if (!cells_.has_value()) return SearchTree(queries, in_leaf, out);
    by_cells(view_, queries, out);
  }

  void SearchTree(absl::Span<const Key> queries, SearchFunction in_leaf, uint32_t* out) const {
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

  absl::Span<const Key> Keys() const { return run().template keys<Key>(); }

  const SimdLevel level_;
  int bits_ = 0;
  AlignedBuffer<Leaf> leaves_;
  // Cells, or a tree over the leaves' separators.
  std::optional<CellDirectory<Key>> cells_;
  AlignedBuffer<Key> separators_;
  FastTreeNodes<Key> tree_;
  PackedView<Key> view_;
  const PackedSearch<Key>* search_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakePackedIndex(SortedRun run,
                                                              const PackedIndexOptions& options) {
  ASSIGN_OR_RETURN(const SimdLevel level, ChooseSimdLevel(options.simd));
  switch (run.kind()) {
    case KeyKind::kU32:
      return PackedIndex<uint32_t>::Build(std::move(run), options, level);
    case KeyKind::kU64:
      return PackedIndex<uint64_t>::Build(std::move(run), options, level);
    case KeyKind::kBytes:
      break;
  }
  return absl::UnimplementedError(
      "cpu:packed takes keys of u32 or u64, not bytes: see cpu:strings");
}

}  // namespace cairn
