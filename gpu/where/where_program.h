#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cairn/device/index_group.h"
#include "gpu/where/where_tree.h"

namespace cairn::gpu {

// One step of evaluating a predicate, for one row or for many at once. The state is one value and a
// stack of values.
enum class WhereStep : uint8_t {
  kLoad,     // value = set
  kAnd,      // value = value AND set
  kOr,       // value = value OR set
  kPush,     // pushes the value on the stack
  kPopAnd,   // value = popped value AND value
  kPopOr,    // value = popped value OR value
  kRequire,  // drops rows for which the value is not true: they are not in the result
};

struct WhereOp {
  WhereStep step;
  uint8_t set;  // for kLoad, kAnd, kOr: the number of the set
  friend bool operator==(const WhereOp& a, const WhereOp& b) {
    return a.step == b.step && a.set == b.set;
  }
};

inline constexpr size_t kMaxSets = DeviceIndexGroup::kMaxComparisons;
// A load or combination per set, and a push and a pop per inner node except the root.
inline constexpr size_t kMaxOps = 3 * kMaxSets;
// Maximum stack depth: log2 n values for n sets.
inline constexpr size_t kMaxStack = 6;

struct WhereProgram {
  std::vector<WhereOp> ops;
  size_t stack = 0;  // maximum number of values on the stack
};

// The sets of a tree from left to right; this is their numbering.
std::vector<const WhereSet*> SetsOf(const WhereTree& tree);

// The program of a tree. It evaluates subtrees before sets, and subtrees that need a larger stack
// first, so that the stack stays as small as possible. Requires at most kMaxSets sets. Throws
// std::bad_alloc.
WhereProgram CompileWhere(const WhereTree& tree);

// The program that tests a row of set `driver`, a child of a kAnd root, for the other children:
// sets before subtrees, and sets in ascending order of `rows`, the expected number of rows of each
// set. Empty if the tree is a set.
WhereProgram CompileRest(const WhereTree& tree, size_t driver, absl::Span<const double> rows);

}  // namespace cairn::gpu
