#include "engine/where/where_plan.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

// Nanoseconds on one core: medians of the benchmark Where/ over 2^24 rows (docs/performance.md,
// "Predicates"). They predict which strategy is the fastest, not its time.
constexpr double kListEntry = 1;      // copy or count an entry's row
constexpr double kTestRow = 9;        // test a row of a list for one comparison
constexpr double kSortRow = 3;        // sort a row of a list
constexpr double kBitmapEntry = 0.8;  // set an entry's row in a bitmap
constexpr double kBitmapRow = 0.01;   // allocate and combine a row of a bitmap
constexpr double kScanRow = 0.25;     // test a row for one comparison, by its position
constexpr double kScanCode = 0.08;    // the same, by a code of one byte
constexpr double kChangedRow = 120;   // test a changed row separately
constexpr double kFoundRow = 1.5;     // list a row that a bitmap or a scan found
constexpr double kWalkEntry = 4;      // walk an entry of the order's index
constexpr double kOrderRow = 60;      // look up and sort a row's key of the order's index
constexpr double kTranslate = 4;      // translate a row that has another number in its index

class Costs {
 public:
  Costs(const GroupMembers& members, const WhereSearch& search)
      : members_(members), space_(search.space()), rows_(space_.end_row()) {}

  double Gather(const WhereNode& node) const {
    switch (node.kind) {
      case Kind::kNothing:
        return 0;
      case Kind::kLeaf: {
        if (node.mode != Mode::kSome) return Bitmap(node) + node.rows * kFoundRow;
        const double sort = members_[node.member]->is_single() ? 0 : kSortRow;
        return static_cast<double>(node.entries) * (kListEntry + sort + Translated(node));
      }
      case Kind::kAnd: {
        double left = node.children[0].rows, cost = Gather(node.children[0]);
        for (size_t i = 1; i < node.children.size(); ++i) {
          cost += left * Test(node.children[i]);
          left *= node.children[i].rows / std::max(1.0, rows_);
        }
        return cost;
      }
      case Kind::kOr:
        break;
    }
    double cost = 0;
    for (const WhereNode& child : node.children) cost += Gather(child) + child.rows * kSortRow;
    return cost;
  }

  double Bitmap(const WhereNode& node) const {
    double cost = rows_ * kBitmapRow;
    if (node.kind == Kind::kLeaf) {
      cost += static_cast<double>(node.entries) * (kBitmapEntry + Translated(node));
    }
    for (const WhereNode& child : node.children) cost += Bitmap(child);
    return cost;
  }

  double Scan(const WhereNode& node) const {
    double cost = 0;
    if (node.kind == Kind::kLeaf) {
      const Delta& delta = members_[node.member]->delta();
      cost += rows_ * ScanRow(*members_[node.member]->version().base) +
              static_cast<double>(delta.removed.size() + delta.added_entries()) * kChangedRow;
      if (node.set.run(0).size() > 4) cost += Bitmap(node);
    }
    for (const WhereNode& child : node.children) cost += Scan(child);
    return cost;
  }

  // The cost of testing one row of a list.
  double Test(const WhereNode& node) const {
    if (node.kind == Kind::kLeaf) {
      const double ranges = std::max(1.0, static_cast<double>(node.set.run(0).size()));
      return kTestRow + std::log2(ranges) * 2 + Translated(node);
    }
    double cost = 0;
    for (const WhereNode& child : node.children) cost += Test(child);
    return cost;
  }

  double Walk(const WhereNode& node, const WhereGoal& goal) const {
    double entries = 0;
    for (size_t s = 0; s < members_[*goal.order_by]->shards(); ++s) {
      entries += static_cast<double>(members_[*goal.order_by + s]->delta().base_run.size());
    }
    const double share = std::max(node.rows, 0.5) / std::max(1.0, rows_);
    const double walked = std::min(entries, static_cast<double>(goal.limit) / share);
    return walked * (kWalkEntry + Test(node));
  }

 private:
  static double ScanRow(const Base& base) {
    const uint64_t keys = base.run_file.properties.distinct_keys;
    return keys <= RowCodes::kMax8    ? kScanCode
           : keys <= RowCodes::kMax16 ? 2 * kScanCode
                                      : kScanRow;
  }
  double Translated(const WhereNode& leaf) const {
    return space_.HasOwnBaseNumbers(leaf.member) ? 0 : kTranslate;
  }

  const GroupMembers& members_;
  const RowSpace& space_;
  const double rows_;
};

// Returns whether rows are counted without reading them: their number is that of entries.
bool IsCountedAlone(const WhereNode& node, const GroupMembers& members) {
  return node.kind == Kind::kNothing || (node.kind == Kind::kLeaf && node.mode == Mode::kSome &&
                                         members[node.member]->is_single());
}

void Describe(const WhereNode& node, const GroupMembers& members, WhereStrategy strategy,
              bool listed, PlanPlaces* places, WherePlan* plan) {
  if (node.kind == Kind::kLeaf) {
    const char* how = strategy == WhereStrategy::kBitmap ? "bitmap"
                      : strategy == WhereStrategy::kScan ? "scanned"
                      : listed                           ? "listed"
                                                         : "tested";
    const bool absent = node.mode == Mode::kAbsent;
    AddComparison({node.text, members[node.member]->name(),
                   absent ? static_cast<uint64_t>(node.rows) : node.entries, how},
                  places, plan);
  }
  for (size_t i = 0; i < node.children.size(); ++i) {
    Describe(node.children[i], members, strategy, listed && (node.kind == Kind::kOr || i == 0),
             places, plan);
  }
}

}  // namespace

void AddComparison(WherePlan::Comparison comparison, PlanPlaces* places, WherePlan* plan) {
  std::string name = absl::StrCat(comparison.index, "\n", comparison.how, "\n", comparison.text);
  const auto [place, is_new] = places->emplace(std::move(name), plan->comparisons.size());
  if (is_new) {
    plan->comparisons.push_back(std::move(comparison));
  } else {
    plan->comparisons[place->second].rows += comparison.rows;
  }
}

absl::StatusOr<WherePlan> PlanWhere(const WhereNode& node, const GroupMembers& members,
                                    const WhereSearch& search, const WhereGoal& goal,
                                    WhereStrategy wanted) {
  const Costs costs(members, search);
  WherePlan plan;
  plan.expected_rows = node.rows;
  const double order = goal.order_by.has_value() ? node.rows * kOrderRow : 0;
  const double listed = goal.only_count ? 0 : node.rows * kFoundRow;
  const bool counted = goal.only_count && IsCountedAlone(node, members);
  const double sorted = goal.only_count || goal.order_by.has_value() ? 0 : node.rows * kSortRow;
  const auto add = [&](WhereStrategy strategy, double nanoseconds) {
    plan.candidates.push_back({strategy, absl::Nanoseconds(nanoseconds)});
  };
  add(WhereStrategy::kGather, counted ? 0 : costs.Gather(node) + sorted + order);
  add(WhereStrategy::kBitmap, costs.Bitmap(node) + listed + order);
  ASSIGN_OR_RETURN(const bool can_scan, search.CanScan(node));
  if (can_scan) {
    add(WhereStrategy::kScan, costs.Scan(node) + listed + order);
  }
  if (goal.order_by.has_value() && !goal.only_count) {
    add(WhereStrategy::kWalk, costs.Walk(node, goal));
  }
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(),
                   [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  plan.strategy = wanted == WhereStrategy::kAuto ? plan.candidates[0].strategy : wanted;
  const bool can = std::any_of(plan.candidates.begin(), plan.candidates.end(),
                               [&](const auto& c) { return c.strategy == plan.strategy; });
  if (!can) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "strategy %s does not support this query: %s", WhereStrategyName(plan.strategy),
        plan.strategy == WhereStrategy::kWalk
            ? "walk requires rows in the order of an index"
            : "a row has several entries in a base, or another number in an index"));
  }
  PlanPlaces places;
  Describe(node, members, plan.strategy, plan.strategy == WhereStrategy::kGather, &places, &plan);
  return plan;
}

std::string_view WhereStrategyName(WhereStrategy strategy) {
  switch (strategy) {
    case WhereStrategy::kAuto:
      return "auto";
    case WhereStrategy::kGather:
      return "gather";
    case WhereStrategy::kBitmap:
      return "bitmap";
    case WhereStrategy::kScan:
      return "scan";
    case WhereStrategy::kWalk:
      return "walk";
  }
  return "unknown";
}

std::string WherePlan::ToString() const {
  std::string text =
      absl::StrFormat("strategy %s, about %.0f rows\n", WhereStrategyName(strategy), expected_rows);
  for (const Comparison& comparison : comparisons) {
    absl::StrAppendFormat(&text, "  %s: %d entries of '%s', %s\n", comparison.text, comparison.rows,
                          comparison.index, comparison.how);
  }
  for (const Candidate& candidate : candidates) {
    absl::StrAppendFormat(&text, "  %s: predicted %.3f ms\n", WhereStrategyName(candidate.strategy),
                          absl::ToDoubleMilliseconds(candidate.predicted));
  }
  return text;
}

}  // namespace cairn
