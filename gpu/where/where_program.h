#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cairn/device/index_group.h"
#include "gpu/where/where_tree.h"

namespace cairn::gpu {

// One step of a predicate's evaluation: of one row, or of many at once. There is one value, and a
// stack of values.
enum class WhereStep : uint8_t {
  kLoad,     // value = set
  kAnd,      // value = value AND set
  kOr,       // value = value OR set
  kPush,     // puts the value on the stack
  kPopAnd,   // value = what is taken from the stack AND value
  kPopOr,    // value = what is taken from the stack OR value
  kRequire,  // rows of which the value is not true are done with: they are none of the answer's
};

struct WhereOp {
  WhereStep step;
  uint8_t set;  // of kLoad, kAnd, kOr: its number
  friend bool operator==(const WhereOp& a, const WhereOp& b) {
    return a.step == b.step && a.set == b.set;
  }
};

inline constexpr size_t kMaxSets = DeviceIndexGroup::kMaxComparisons;
// A load or combination for each set, and a push and a pop for each inner node but the root.
inline constexpr size_t kMaxOps = 3 * kMaxSets;
// What the stack holds at most: of n sets, log2 n values.
inline constexpr size_t kMaxStack = 6;

struct WhereProgram {
  std::vector<WhereOp> ops;
  size_t stack = 0;  // the most values on it at once
};

// The sets of a tree from left to right, numbered so.
std::vector<const WhereSet*> SetsOf(const WhereTree& tree);

// The program of a tree: subtrees before sets, what needs the larger stack first, so that the stack
// stays as small as it can. Requires at most kMaxSets sets. Throws std::bad_alloc.
WhereProgram CompileWhere(const WhereTree& tree);

// The program that a row which is in `driver`, one of the sets that are children of a root of kAnd,
// still has to pass: the other children, sets before subtrees, and the sets in the order of `rows`,
// how many each set is expected to have. None of a tree that is a set.
WhereProgram CompileRest(const WhereTree& tree, size_t driver, absl::Span<const double> rows);

}  // namespace cairn::gpu
