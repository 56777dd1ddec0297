#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/predicate.h"
#include "engine/where/entry_set.h"
#include "engine/where/group_member.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// A predicate over the indexes of a group that is ready for evaluation: its keys are looked up, and
// its negations are resolved.
struct WhereNode {
  enum class Kind : uint8_t { kNothing, kLeaf, kAnd, kOr };
  // The rows of a leaf: those with an entry in `set`; those with entries, but none in `set`; those
  // without entries.
  enum class Mode : uint8_t { kSome, kNoneOf, kAbsent };

  Kind kind = Kind::kNothing;
  std::vector<WhereNode> children;  // kAnd, kOr: at least two
  size_t member = 0;
  Mode mode = Mode::kSome;
  EntrySet set;
  std::string text;
  uint64_t entries = 0;  // in a leaf's set
  double rows = 0;       // expected number
};

using GroupMembers = std::vector<std::unique_ptr<const GroupMember>>;

// Looks up the keys of a predicate. Adjacent comparisons of one index become one leaf if that is
// equivalent, in O(n log n) for n of them. `rows` is the number of rows of the group.
// InvalidArgument: as for IndexGroup::Count. The errors of `stop`. Throws std::bad_alloc.
absl::StatusOr<WhereNode> ResolvePredicate(const Predicate& where, const GroupMembers& members,
                                           uint64_t rows, const StopCondition& stop);

// Returns the rows without an entry in an index. `member` is its only or first shard.
WhereNode AbsentRows(const GroupMembers& members, size_t member, uint64_t rows);
// Returns the condition on one index, whose shards are members [first, end), that all rows of a
// node satisfy. It is a leaf of entries in a set, or several such leaves of different shards; each
// row satisfies one of these. Returns null if the node has no such condition.
const WhereNode* EntriesOf(const WhereNode& node, size_t first, size_t end);
// Returns the leaf of a member in a result of EntriesOf, or null.
const WhereNode* LeafOf(const WhereNode& entries, size_t member);
inline WhereNode* LeafOf(WhereNode& entries, size_t member) {
  return const_cast<WhereNode*>(LeafOf(std::as_const(entries), member));
}
// Returns whether each row has at most one entry in the index of `member`. GroupMember::Prepare
// must have been called for all shards of the index.
bool IsSingle(const GroupMembers& members, size_t member);
// Returns the conjunction of these nodes. Requires at least one node, and none of kind kNothing.
WhereNode AllOf(std::vector<WhereNode> nodes, const GroupMembers& members, uint64_t rows);

}  // namespace cairn
