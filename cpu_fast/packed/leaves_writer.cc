#include "cpu_fast/packed/leaves_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpu_fast/fast/fast_tree.h"
#include "cpu_fast/packed/leaf_plan.h"
#include "cpu_fast/packed/stored_leaves.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Tasks of LeafCuts whose leaves are filled before each write: 2^19 entries.
constexpr size_t kTasksAtATime = 8;

template <typename T>
absl::Status AddArray(RunFileWriter* file, RunSection id, absl::Span<const T> values) {
  ASSIGN_OR_RETURN(SectionWriter * section,
                   file->file().AddSection(static_cast<uint32_t>(id), values.size() * sizeof(T)));
  RETURN_IF_ERROR(section->AppendArray(values));
  return section->Close();
}

template <typename Key>
absl::Status AddLeaves(RunFileWriter* file, const SortedRun& run, const LeafCuts<Key>& cuts,
                       int threads) {
  ASSIGN_OR_RETURN(SectionWriter * section,
                   file->file().AddSection(static_cast<uint32_t>(RunSection::kLeaves),
                                           cuts.leaves * sizeof(Leaf)));
  const size_t tasks = cuts.leaves_before.size() - 1;
  AlignedBuffer<Leaf> leaves;
  for (size_t first = 0; first == 0 || first < tasks; first += kTasksAtATime) {
    const size_t last = std::min(first + kTasksAtATime, tasks);
    const size_t count =
        run.empty() ? cuts.leaves : cuts.leaves_before[last] - cuts.leaves_before[first];
    if (leaves.size() < count) {
      leaves = AlignedBuffer<Leaf>();
      leaves = AlignedBuffer<Leaf>(count);
    }
    FillLeaves(run.keys<Key>(), run.row_ids(), cuts, first, last, threads, leaves.data());
    RETURN_IF_ERROR(section->AppendArray(std::as_const(leaves).span().first(count)));
  }
  return section->Close();
}

template <typename Key>
absl::Status AddCells(RunFileWriter* file, const CellDirectory<Key>& directory) {
  std::vector<StoredGroup> groups;
  for (const CellScale<Key>& scale : directory.groups()) {
    groups.push_back({scale.low, scale.high, scale.multiplier, scale.first_cell, scale.shift, 0});
  }
  RETURN_IF_ERROR(AddArray(file, RunSection::kCells, directory.cells()));
  RETURN_IF_ERROR(AddArray(file, RunSection::kCellGroups, absl::MakeConstSpan(groups)));
  return AddArray(file, RunSection::kGroupBounds, directory.bounds());
}

template <typename Key>
absl::Status AddTree(RunFileWriter* file, absl::Span<const Key> separators) {
  RETURN_IF_ERROR(AddArray(file, RunSection::kLeafSeparators, separators));
  const FastTreeNodes<Key> tree(separators, {}, PageBlocking::kNone, SimdLevel::kScalar);
  return AddArray(file, RunSection::kLeafTree, tree.nodes());
}

template <typename Key>
absl::Status Write(RunFileWriter* file, const SortedRun& run, int threads,
                   const PackedIndexOptions& options) {
  ASSIGN_OR_RETURN(const LeafPlan<Key> plan, PlanLeaves(run.keys<Key>(), options, threads));
  LeafProperties properties{};
  properties.version = kLeavesVersion;
  properties.bits = static_cast<uint32_t>(plan.cuts.bits);
  properties.leaves = plan.cuts.leaves;
  StoredDirectory directory = StoredDirectory::kTree;
  if (plan.cells.has_value()) {
    directory = StoredDirectory::kCells;
    properties.exact = plan.cells->exact() ? 1 : 0;
    properties.cells = plan.cells->cells().size();
    properties.groups = plan.cells->groups().size();
  }
  properties.directory = static_cast<uint32_t>(directory);
  RETURN_IF_ERROR(AddArray(file, RunSection::kLeafProperties,
                           absl::Span<const LeafProperties>(&properties, 1)));
  RETURN_IF_ERROR(AddLeaves(file, run, plan.cuts, threads));
  if (plan.cells.has_value()) return AddCells(file, *plan.cells);
  return AddTree(file, plan.cuts.separators.span());
}

}  // namespace

absl::Status WriteLeaves(RunFileWriter* file, int threads, const PackedIndexOptions& options) {
  if (file->properties().kind() == PhysicalType::kBytes) return absl::OkStatus();
  ASSIGN_OR_RETURN(const SortedRun run, file->ReadBack());
  return run.kind() == PhysicalType::kU32 ? Write<uint32_t>(file, run, threads, options)
                                          : Write<uint64_t>(file, run, threads, options);
}

}  // namespace cairn
