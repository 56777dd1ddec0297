#include "gpu/where/where_planner.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {

std::string_view DeviceWhereStrategyName(DeviceWhereStrategy strategy) {
  switch (strategy) {
    case DeviceWhereStrategy::kAuto:
      return "auto";
    case DeviceWhereStrategy::kGather:
      return "gather";
    case DeviceWhereStrategy::kBitmap:
      return "bitmap";
    case DeviceWhereStrategy::kScan:
      return "scan";
  }
  return "unknown";
}

std::string DeviceWherePlan::ToString() const {
  std::string text = absl::StrFormat("strategy %s, about %.0f rows\n",
                                     DeviceWhereStrategyName(strategy), expected_rows);
  for (const Comparison& comparison : comparisons) {
    absl::StrAppendFormat(&text, "  column %d: %d %s of keys%s, about %.0f rows\n",
                          comparison.column, comparison.ranges,
                          comparison.ranges == 1 ? "range" : "ranges",
                          comparison.null ? " and NULL" : "", comparison.rows);
  }
  absl::StrAppend(&text, "  predicted:");
  const char* separator = " ";
  for (const Candidate& candidate : candidates) {
    absl::StrAppendFormat(&text, "%s%s %.0f us", separator,
                          DeviceWhereStrategyName(candidate.strategy),
                          absl::ToDoubleMicroseconds(candidate.predicted));
    separator = ", ";
  }
  return text + "\n";
}

namespace gpu {
namespace {

// Microseconds on an H100, from the medians of Where/ over 2^28 rows
// (docs/performance.md, "Constants in the code").
constexpr double kStart = 25;         // finding the ranges and launching kernels
constexpr double kListedRow = 2e-6;   // reading a row of a list
constexpr double kTestedRow = 34e-6;  // in addition, testing it for one set, at a random position
// In addition to either, per search step if a set has several ranges.
constexpr double kSearchStep = 2.5e-6;
constexpr double kBitmapStart = 73;       // additional kernels
constexpr double kBitmapEntry = 16e-6;    // sorting an entry into its partition and setting its bit
constexpr double kScannedRow = 0.34e-6;   // reading a row's code of one column
constexpr double kListScanned = 0.04e-6;  // in addition, if the set has several ranges
constexpr double kOpenRow = 30e-6;        // looking up a row whose codes are not conclusive
constexpr double kMarkedRow = 0.1e-6;     // clearing and counting a row's bit, for rows of kGather

using TreeKind = WhereTree::Kind;

// Shares of the rows: those that satisfy a predicate, and those that possibly and surely do
// according to their codes.
struct WhereShare {
  double expected, possible, sure;
};

class WhereCosts {
 public:
  WhereCosts(const WhereGroupFacts& group, const WhereDecision& decision)
      : rows_(static_cast<double>(std::max<uint64_t>(1, group.rows))), decision_(decision) {}

  // The share of a tree whose sets are numbered from *first on, assuming that sets are independent.
  WhereShare Share(const WhereTree& tree, size_t* first) const {
    if (tree.kind == TreeKind::kSet) return SetShare((*first)++);
    const bool all = tree.kind == TreeKind::kAnd;
    WhereShare share{1, 1, 1};
    for (const WhereTree& child : tree.children) {
      const WhereShare of = Share(child, first);
      share.expected *= all ? of.expected : 1 - of.expected;
      share.possible *= all ? of.possible : 1 - of.possible;
      share.sure *= all ? of.sure : 1 - of.sure;
    }
    if (!all) share = {1 - share.expected, 1 - share.possible, 1 - share.sure};
    return share;
  }

  double Gather(size_t driver, const WhereProgram& rest, bool only_count) const {
    double left = decision_.entries[driver].expected;
    double cost =
        kStart + left * (kListedRow + SearchCost(driver)) + (only_count ? 0 : rows_ * kMarkedRow);
    double value = 1;  // the share of the rows for which the current value is true
    for (const WhereOp& op : rest.ops) {
      switch (op.step) {
        case WhereStep::kLoad:
          value = SetShare(op.set).expected;
          cost += left * (kTestedRow + SearchCost(op.set));
          break;
        case WhereStep::kAnd:
        case WhereStep::kOr:
          cost += left * (kTestedRow + SearchCost(op.set));
          // Assumed to be a part of a longer test whose last step decides.
          value = op.step == WhereStep::kAnd ? value * SetShare(op.set).expected
                                             : std::min(1.0, value + SetShare(op.set).expected);
          break;
        case WhereStep::kRequire:
          left *= value;
          break;
        case WhereStep::kPush:
        case WhereStep::kPopAnd:
        case WhereStep::kPopOr:
          break;
      }
    }
    return cost;
  }

  double Bitmap() const {
    double cost = kStart + kBitmapStart;
    for (size_t i = 0; i < decision_.sets.size(); ++i) {
      cost += decision_.entries[i].expected * (kBitmapEntry + 2 * SearchCost(i));
    }
    return cost;
  }

  double Scan(const WhereShare& share) const {
    double cost = kStart + rows_ * (share.possible - share.sure) * kOpenRow;
    for (size_t i = 0; i < decision_.sets.size(); ++i) {
      cost += rows_ * (kScannedRow + (Ranges(i) > 1 ? kListScanned : 0));
    }
    return cost;
  }

 private:
  double Ranges(size_t set) const {
    return static_cast<double>(decision_.sets[set].ranges.size() + decision_.sets[set].null);
  }
  double SearchCost(size_t set) const {
    return kSearchStep * std::log2(std::max(1.0, Ranges(set)));
  }
  // Assumes that half of the positions with the codes at a range's two ends are in the range.
  WhereShare SetShare(size_t set) const {
    const double share = decision_.entries[set].expected / rows_, borders = Ranges(set) / 256;
    return {share, std::min(1.0, share + borders), std::max(0.0, share - borders)};
  }

  const double rows_;
  const WhereDecision& decision_;
};

// The smallest set that every matching row must be in; kMaxSets if there is none.
size_t DriverOf(const WhereTree& tree, const WhereDecision& decision) {
  if (tree.kind == TreeKind::kSet) return 0;
  size_t driver = kMaxSets, set = 0;
  for (const WhereTree& child : tree.children) {
    if (tree.kind == TreeKind::kAnd && child.kind == TreeKind::kSet &&
        (driver == kMaxSets ||
         decision.entries[set].expected < decision.entries[driver].expected)) {
      driver = set;
    }
    set += SetsOf(child).size();
  }
  return driver;
}

// The number of rows per partition, in bits; 0 if no size is possible.
int PartBits(const WhereGroupFacts& group, const WhereProgram& program) {
  // The value, the stack, and space for one set.
  const size_t bitmaps = program.stack + 2;
  int bits = kMinPartBits;
  while (bits < kMaxPartBits && (group.rows >> bits) > 512) ++bits;
  while (bits > kMinPartBits && bitmaps << (bits - 3) > group.shared_bytes) --bits;
  const bool fits = bitmaps << (bits - 3) <= group.shared_bytes;
  return fits && group.rows <= kMaxParts << bits ? bits : 0;
}

EntryEstimate EstimateSet(const WhereSet& set, const WhereGroupFacts& group) {
  const KeySample& sample = group.columns[set.column];
  EntryEstimate all;
  for (const DeviceKeyRange& range : set.ranges) {
    const EntryEstimate of = sample.Estimate(range);
    all.least += of.least;
    all.most = std::min(all.most + of.most, sample.entries());
    all.expected += of.expected;
  }
  all.expected =
      std::clamp(all.expected, static_cast<double>(all.least), static_cast<double>(all.most));
  if (!set.null) return all;
  const uint64_t nulls = group.rows - sample.entries();
  return {all.least + nulls, all.most + nulls, all.expected + static_cast<double>(nulls)};
}

absl::Status CannotAnswer(DeviceWhereStrategy strategy) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "strategy %s cannot execute this predicate: %s", DeviceWhereStrategyName(strategy),
      strategy == DeviceWhereStrategy::kGather
          ? "there is no comparison that all rows must satisfy"
          : "there are too many rows, or its comparisons have more than 2^32 entries together"));
}

}  // namespace

absl::StatusOr<WhereDecision> DecideWhere(const DevicePredicate& where,
                                          const WhereGroupFacts& group, bool only_count,
                                          DeviceWhereStrategy wanted) {
  ASSIGN_OR_RETURN(const WhereTree tree, MakeWhereTree(where, group.columns.size()));
  WhereDecision decision;
  for (const WhereSet* set : SetsOf(tree)) decision.sets.push_back(*set);
  if (decision.sets.size() > kMaxSets) {
    return absl::InvalidArgumentError(
        absl::StrFormat("predicate: got %d comparisons, more than the maximum of %d",
                        decision.sets.size(), kMaxSets));
  }
  std::vector<double> rows;
  uint64_t max_entries = 0;
  for (const WhereSet& set : decision.sets) {
    decision.entries.push_back(EstimateSet(set, group));
    rows.push_back(decision.entries.back().expected);
    max_entries += decision.entries.back().most;
    decision.plan.comparisons.push_back({set.column, set.ranges.size(), set.null, rows.back()});
  }
  decision.program = CompileWhere(tree);

  const WhereCosts costs(group, decision);
  size_t first = 0;
  const WhereShare share = costs.Share(tree, &first);
  decision.plan.expected_rows = share.expected * static_cast<double>(group.rows);
  auto& candidates = decision.plan.candidates;
  decision.driver = DriverOf(tree, decision);
  if (decision.driver != kMaxSets) {
    decision.rest = CompileRest(tree, decision.driver, rows);
    const bool counted = only_count && decision.rest.ops.empty();
    candidates.push_back(
        {DeviceWhereStrategy::kGather,
         absl::Microseconds(counted ? kStart
                                    : costs.Gather(decision.driver, decision.rest, only_count))});
  }
  decision.part_bits = PartBits(group, decision.program);
  if (decision.part_bits != 0 && max_entries <= kMaxEntries) {
    candidates.push_back({DeviceWhereStrategy::kBitmap, absl::Microseconds(costs.Bitmap())});
  }
  candidates.push_back({DeviceWhereStrategy::kScan, absl::Microseconds(costs.Scan(share))});
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  decision.plan.strategy = wanted == DeviceWhereStrategy::kAuto ? candidates[0].strategy : wanted;
  const bool can = std::any_of(candidates.begin(), candidates.end(), [&](const auto& candidate) {
    return candidate.strategy == decision.plan.strategy;
  });
  if (!can) return CannotAnswer(decision.plan.strategy);
  return decision;
}

}  // namespace gpu
}  // namespace cairn
