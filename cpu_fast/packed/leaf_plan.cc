#include "cpu_fast/packed/leaf_plan.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// A directory of cells is used if it needs at most this factor of leaves.
constexpr double kCellsWorth = 1.45;

template <typename Key>
constexpr int kBitsOf = static_cast<int>(sizeof(Key)) * 8;

absl::Status CheckBits(int bits, int key_bits) {
  if (bits != 0 && bits != 16 && bits != 32 && bits != 64) {
    return absl::InvalidArgumentError(absl::StrFormat("bits: expected 16, 32 or 64, got %d", bits));
  }
  if (bits > key_bits) {
    return absl::InvalidArgumentError(
        absl::StrFormat("bits: got %d, but the keys have %d bits", bits, key_bits));
  }
  return absl::OkStatus();
}

// Cuts keys into leaves, and builds cells over them unless `directory` is kTree.
template <typename Key>
absl::StatusOr<LeafPlan<Key>> Cut(absl::Span<const Key> keys, int bits, LeafDirectory directory,
                                  int threads) {
  LeafPlan<Key> plan;
  ASSIGN_OR_RETURN(plan.cuts, CutLeaves(keys, bits, threads));
  if (directory != LeafDirectory::kTree) {
    plan.cells = CellDirectory<Key>::Build(std::as_const(plan.cuts.separators).span(),
                                           bits < kBitsOf<Key>, threads);
  }
  return plan;
}

template <typename Key>
bool CellsSuit(const LeafPlan<Key>& plan) {
  return plan.cells.has_value() && plan.cells->groups().size() <= CellDirectory<Key>::kFewGroups;
}

}  // namespace

template <typename Key>
absl::StatusOr<LeafPlan<Key>> PlanLeaves(absl::Span<const Key> keys,
                                         const PackedIndexOptions& options, int threads) {
  RETURN_IF_ERROR(CheckBits(options.bits, kBitsOf<Key>));
  const int fewest = options.bits != 0 ? options.bits : ChooseLeafBits(keys, threads);
  ASSIGN_OR_RETURN(LeafPlan<Key> plan, Cut(keys, fewest, options.directory, threads));
  if (options.directory == LeafDirectory::kTree || CellsSuit(plan)) return plan;
  // Leaves with full keys have no blocks to respect. They therefore suit cells more often and need
  // fewer groups. A directory of one cache line per lookup is worth a few more leaves.
  if (options.bits == 0 && fewest < kBitsOf<Key> &&
      static_cast<double>(CountPackedLeaves(keys, kBitsOf<Key>, threads)) <=
          static_cast<double>(plan.cuts.leaves) * kCellsWorth) {
    plan = LeafPlan<Key>();
    ASSIGN_OR_RETURN(plan, Cut(keys, kBitsOf<Key>, options.directory, threads));
    if (!CellsSuit(plan)) {
      plan = LeafPlan<Key>();
      ASSIGN_OR_RETURN(plan, Cut(keys, fewest, options.directory, threads));
    }
  }
  if (options.directory == LeafDirectory::kCells && !plan.cells.has_value()) {
    return absl::FailedPreconditionError(
        "directory=cells: too few keys, or too unevenly distributed; use directory=auto or "
        "directory=tree");
  }
  return plan;
}

template absl::StatusOr<LeafPlan<uint32_t>> PlanLeaves(absl::Span<const uint32_t>,
                                                       const PackedIndexOptions&, int);
template absl::StatusOr<LeafPlan<uint64_t>> PlanLeaves(absl::Span<const uint64_t>,
                                                       const PackedIndexOptions&, int);

}  // namespace cairn
