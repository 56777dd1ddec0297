#include "cpu_fast/packed/leaves_check.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "cpu_fast/fast/fast_tree.h"
#include "cpu_fast/packed/leaf_plan.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Bytes that one task compares.
constexpr size_t kCompareGrain = size_t{4} << 20;

// The minimum of values that several threads find.
class Least {
 public:
  void Offer(size_t value) {
    size_t least = value_.load(std::memory_order_relaxed);
    while (value < least && !value_.compare_exchange_weak(least, value)) {
    }
  }
  bool found() const { return value() != SIZE_MAX; }
  size_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<size_t> value_{SIZE_MAX};
};

template <typename T>
size_t FirstDifference(absl::Span<const T> a, absl::Span<const T> b) {
  size_t i = 0;
  while (i < a.size() && std::memcmp(&a[i], &b[i], sizeof(T)) == 0) ++i;
  return i;
}

template <typename Key>
class LeavesCheck {
 public:
  LeavesCheck(const SortedRun& run, const StoredLeaves& stored, const LeafSections<Key>& sections,
              const LeafPlan<Key>& plan, int threads)
      : run_(run), stored_(stored), sections_(sections), plan_(plan), threads_(threads) {}

  absl::Status Run() const {
    RETURN_IF_ERROR(CheckProperties());
    RETURN_IF_ERROR(CheckLeaves());
    return plan_.cells.has_value() ? CheckCells() : CheckTree();
  }

 private:
  absl::Status CheckProperties() const {
    const LeafProperties& p = stored_.properties;
    const bool cells = plan_.cells.has_value();
    if (p.leaves == plan_.cuts.leaves && p.cells == (cells ? plan_.cells->cells().size() : 0) &&
        p.groups == (cells ? plan_.cells->groups().size() : 0) &&
        p.exact == (cells && plan_.cells->exact() ? 1 : 0)) {
      return absl::OkStatus();
    }
    return DamagedLeaves(stored_, RunSection::kLeafProperties, 0,
                         absl::StrFormat("got %d leaves, expected %d, or the wrong directory",
                                         p.leaves, plan_.cuts.leaves));
  }

  absl::Status CheckLeaves() const {
    const LeafCuts<Key>& cuts = plan_.cuts;
    const auto keys = run_.template keys<Key>();
    Least wrong;
    // Without entries there is one leaf, but no task would fill it.
    const size_t tasks = cuts.leaves_before.size() - 1;
    ParallelFor(threads_, std::max<size_t>(tasks, 1), [&](size_t task) {
      if (wrong.found()) return;
      const size_t first = run_.empty() ? 0 : cuts.leaves_before[task];
      const size_t count = run_.empty() ? 1 : cuts.leaves_before[task + 1] - first;
      AlignedBuffer<Leaf> leaves(count);
      FillLeaves(keys, run_.row_ids(), cuts, task, std::min(task + 1, tasks), 1, leaves.data());
      const auto expected = std::as_const(leaves).span();
      const size_t at = FirstDifference(expected, sections_.leaves.subspan(first, count));
      if (at < count) wrong.Offer(first + at);
    });
    return Result(RunSection::kLeaves, wrong, sizeof(Leaf));
  }

  absl::Status CheckCells() const {
    RETURN_IF_ERROR(Same(RunSection::kCells, plan_.cells->cells(), sections_.cells));
    Least wrong;
    for (size_t g = 0; g < sections_.groups.size(); ++g) {
      const CellScale<Key>& scale = plan_.cells->groups()[g];
      const StoredGroup expected = {scale.low,        scale.high,  scale.multiplier,
                                    scale.first_cell, scale.shift, 0};
      if (std::memcmp(&expected, &sections_.groups[g], sizeof(expected)) != 0) wrong.Offer(g);
    }
    RETURN_IF_ERROR(Result(RunSection::kCellGroups, wrong, sizeof(StoredGroup)));
    return Same(RunSection::kGroupBounds, plan_.cells->bounds(), sections_.bounds);
  }

  absl::Status CheckTree() const {
    const auto separators = plan_.cuts.separators.span();
    RETURN_IF_ERROR(Same(RunSection::kLeafSeparators, separators, sections_.separators));
    const FastTreeNodes<Key> tree(separators, {}, PageBlocking::kNone, SimdLevel::kScalar);
    return Same(RunSection::kLeafTree, tree.nodes(), sections_.nodes);
  }

  template <typename T>
  absl::Status Same(RunSection section, absl::Span<const T> expected,
                    absl::Span<const T> found) const {
    constexpr size_t kGrain = kCompareGrain / sizeof(T);
    Least wrong;
    ParallelFor(threads_, (expected.size() + kGrain - 1) / kGrain, [&](size_t task) {
      const auto part = expected.subspan(task * kGrain, kGrain);
      const size_t at = FirstDifference(part, found.subspan(task * kGrain, kGrain));
      if (at < part.size()) wrong.Offer(task * kGrain + at);
    });
    return Result(section, wrong, sizeof(T));
  }

  absl::Status Result(RunSection section, const Least& wrong, size_t width) const {
    if (!wrong.found()) return absl::OkStatus();
    return DamagedLeaves(stored_, section, wrong.value() * width,
                         "differs from the section built from the run's entries");
  }

  const SortedRun& run_;
  const StoredLeaves& stored_;
  const LeafSections<Key>& sections_;
  const LeafPlan<Key>& plan_;
  const int threads_;
};

template <typename Key>
absl::Status Check(const SortedRun& run, const StoredLeaves& stored, int threads) {
  ASSIGN_OR_RETURN(const LeafSections<Key> sections, SectionsOf<Key>(stored));
  PackedIndexOptions options;
  options.bits = static_cast<int>(stored.properties.bits);
  options.directory =
      stored.directory() == StoredDirectory::kCells ? LeafDirectory::kCells : LeafDirectory::kTree;
  absl::StatusOr<LeafPlan<Key>> plan = PlanLeaves(run.keys<Key>(), options, threads);
  if (!plan.ok()) {
    return DamagedLeaves(stored, RunSection::kLeafProperties, 0,
                         std::string(plan.status().message()));
  }
  return LeavesCheck<Key>(run, stored, sections, *plan, threads).Run();
}

}  // namespace

absl::Status CheckStoredLeaves(const SortedRun& run, const StoredLeaves& stored, int threads) {
  return run.kind() == PhysicalType::kU32 ? Check<uint32_t>(run, stored, threads)
                                          : Check<uint64_t>(run, stored, threads);
}

}  // namespace cairn
