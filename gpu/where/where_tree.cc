#include "gpu/where/where_tree.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

using PredicateKind = DevicePredicate::Kind;

std::vector<DeviceKeyRange> CommonKeys(absl::Span<const DeviceKeyRange> a,
                                       absl::Span<const DeviceKeyRange> b) {
  std::vector<DeviceKeyRange> common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t first = std::max(a[i].first, b[j].first);
    const uint64_t last = std::min(a[i].last, b[j].last);
    if (first <= last) common.push_back({first, last});
    a[i].last < b[j].last ? ++i : ++j;
  }
  return common;
}

std::vector<DeviceKeyRange> AllKeys() {
  return {{0, UINT64_MAX}};
}

// Adds a set to the children of a node, merging it into a set of the same column if there is one.
// For kOr, the ranges are then not sorted yet.
void AddSet(WhereTree::Kind kind, WhereTree child, std::vector<WhereTree>* children) {
  const auto same = std::find_if(children->begin(), children->end(), [&](const WhereTree& other) {
    return other.kind == WhereTree::Kind::kSet && other.set.column == child.set.column;
  });
  if (same == children->end()) {
    children->push_back(std::move(child));
    return;
  }
  WhereSet& set = same->set;
  if (kind == WhereTree::Kind::kAnd) {
    set.ranges = CommonKeys(set.ranges, child.set.ranges);
    set.null = set.null && child.set.null;
  } else {
    set.ranges.insert(set.ranges.end(), child.set.ranges.begin(), child.set.ranges.end());
    set.null = set.null || child.set.null;
  }
}

absl::StatusOr<WhereTree> TreeOf(const DevicePredicate& where, bool negated, size_t columns) {
  WhereTree tree;
  switch (where.kind()) {
    case PredicateKind::kKeys:
    case PredicateKind::kIsNull: {
      if (where.column() >= columns) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "predicate: got column %d, but the group has %d columns", where.column(), columns));
      }
      tree.set.column = where.column();
      if (where.kind() == PredicateKind::kKeys) {
        tree.set.ranges = SortedRanges(where.ranges());
        if (negated) tree.set.ranges = OtherKeys(tree.set.ranges);
      } else if (negated) {
        tree.set.ranges = AllKeys();
      } else {
        tree.set.null = true;
      }
      return tree;
    }
    case PredicateKind::kNot:
      return TreeOf(where.children()[0], !negated, columns);
    case PredicateKind::kAnd:
    case PredicateKind::kOr:
      break;
  }
  if (where.children().empty()) {
    return absl::InvalidArgumentError(
        "predicate: expected at least one predicate in a list, got none");
  }
  tree.kind = (where.kind() == PredicateKind::kAnd) != negated ? WhereTree::Kind::kAnd
                                                               : WhereTree::Kind::kOr;
  std::vector<WhereTree> children;
  const auto add = [&](WhereTree child) {
    if (child.kind == WhereTree::Kind::kSet) {
      AddSet(tree.kind, std::move(child), &children);
    } else {
      children.push_back(std::move(child));
    }
  };
  for (const DevicePredicate& predicate : where.children()) {
    ASSIGN_OR_RETURN(WhereTree child, TreeOf(predicate, negated, columns));
    if (child.kind == tree.kind) {
      for (WhereTree& grandchild : child.children) add(std::move(grandchild));
    } else {
      add(std::move(child));
    }
  }
  if (tree.kind == WhereTree::Kind::kOr) {
    for (WhereTree& child : children) child.set.ranges = SortedRanges(child.set.ranges);
  }
  if (children.size() == 1) {
    WhereTree only = std::move(children[0]);
    return only;
  }
  tree.children = std::move(children);
  return tree;
}

}  // namespace

std::vector<DeviceKeyRange> SortedRanges(absl::Span<const DeviceKeyRange> ranges) {
  std::vector<DeviceKeyRange> sorted;
  sorted.reserve(ranges.size());
  for (const DeviceKeyRange& range : ranges) {
    if (range.first <= range.last) sorted.push_back(range);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const DeviceKeyRange& range : sorted) {
    if (kept > 0 &&
        (sorted[kept - 1].last == UINT64_MAX || range.first <= sorted[kept - 1].last + 1)) {
      sorted[kept - 1].last = std::max(sorted[kept - 1].last, range.last);
    } else {
      sorted[kept++] = range;
    }
  }
  sorted.resize(kept);
  return sorted;
}

std::vector<DeviceKeyRange> OtherKeys(absl::Span<const DeviceKeyRange> ranges) {
  std::vector<DeviceKeyRange> others;
  uint64_t next = 0;  // the first key that is not handled yet
  for (const DeviceKeyRange& range : ranges) {
    if (range.first > next) others.push_back({next, range.first - 1});
    if (range.last == UINT64_MAX) return others;
    next = range.last + 1;
  }
  others.push_back({next, UINT64_MAX});
  return others;
}

absl::StatusOr<WhereTree> MakeWhereTree(const DevicePredicate& where, size_t columns) {
  if (where.depth() > DeviceIndexGroup::kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrFormat("predicate: nested %d deep, more than the maximum of %d", where.depth(),
                        DeviceIndexGroup::kMaxDepth));
  }
  return TreeOf(where, false, columns);
}

}  // namespace cairn::gpu
