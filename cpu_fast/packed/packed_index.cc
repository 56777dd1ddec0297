#include "cpu_fast/packed/packed_index.h"

#include <optional>
#include <utility>

#include "cpu_fast/packed/cell_directory.h"
#include "cpu_fast/packed/leaf_plan.h"
#include "cpu_fast/packed/packed_index_base.h"
#include "index/layout/packed_leaves.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Leaves and a directory that are built in memory.
template <typename Key>
class PackedIndex final : public PackedIndexBase<Key> {
 public:
  static absl::StatusOr<std::unique_ptr<OrderedIndex>> Build(SortedRun run,
                                                             const PackedIndexOptions& options,
                                                             SimdLevel level) {
    std::unique_ptr<PackedIndex> index(new PackedIndex(std::move(run), level));
    RETURN_IF_ERROR(index->Fill(options));
    return index;
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
  using PackedIndexBase<Key>::PackedIndexBase;
  using PackedIndexBase<Key>::tree_;
  using PackedIndexBase<Key>::view_;

  absl::Status Fill(const PackedIndexOptions& options) {
    const int threads = Topology::Get().cores();
    const absl::Span<const Key> keys = this->run().template keys<Key>();
    ASSIGN_OR_RETURN(LeafPlan<Key> plan, PlanLeaves(keys, options, threads));
    cells_ = std::move(plan.cells);
    if (cells_.has_value()) {
      plan.cuts.separators = AlignedBuffer<Key>();
      view_.cells = cells_->cells().data();
      view_.groups = cells_->groups();
      view_.bounds = cells_->bounds();
      view_.far_bounds = cells_->far_bounds();
    }
    // Leaves are filled last, when the plan is final, because they take most of an index's memory.
    leaves_ = FillLeaves(keys, this->run().row_ids(), plan.cuts, threads);
    view_.leaves = std::as_const(leaves_).data();
    view_.leaf_count = leaves_.size();
    if (!cells_.has_value()) {
      separators_ = std::move(plan.cuts.separators);
      tree_ = FastTreeNodes<Key>(std::as_const(separators_).span(), {}, PageBlocking::kNone,
                                 this->level());
    }
    this->ChooseSearch(plan.cuts.bits, !cells_.has_value() || cells_->exact(), LeafTrust::kFull);
    return absl::OkStatus();
  }

  AlignedBuffer<Leaf> leaves_;
  // Cells, or a tree over the leaves' separators.
  std::optional<CellDirectory<Key>> cells_;
  AlignedBuffer<Key> separators_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakePackedIndex(SortedRun run,
                                                              const PackedIndexOptions& options) {
  ASSIGN_OR_RETURN(const SimdLevel level, ChooseSimdLevel(options.simd));
  switch (run.kind()) {
    case PhysicalType::kU32:
      return PackedIndex<uint32_t>::Build(std::move(run), options, level);
    case PhysicalType::kU64:
      return PackedIndex<uint64_t>::Build(std::move(run), options, level);
    case PhysicalType::kBytes:
      break;
  }
  return absl::UnimplementedError(
      "cpu:packed: expected u32 or u64 keys, got byte strings; use cpu:strings");
}

}  // namespace cairn
