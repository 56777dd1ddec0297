#pragma once

#include <atomic>
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

namespace cairn {

// A predicate over the indexes of a group, with its keys found and its negations gone: what is
// evaluated.
struct WhereNode {
  enum class Kind : uint8_t { kNothing, kLeaf, kAnd, kOr };
  // Of a leaf: rows with an entry in `set`, rows with entries of which none is in it, rows without
  // entries.
  enum class Mode : uint8_t { kSome, kNoneOf, kAbsent };

  Kind kind = Kind::kNothing;
  std::vector<WhereNode> children;  // kAnd, kOr: two or more
  size_t member = 0;
  Mode mode = Mode::kSome;
  EntrySet set;
  std::string text;
  uint64_t entries = 0;  // of a leaf's set
  double rows = 0;       // expected
};

using GroupMembers = std::vector<std::unique_ptr<const GroupMember>>;

// Finds the keys of a predicate. Comparisons of one index side by side become one leaf where that
// asks the same, in O(n log n) for n of them. `rows` are those of the group; `cancelled` may be
// null. Errors: InvalidArgument as of IndexGroup::Count; Cancelled. Throws std::bad_alloc.
absl::StatusOr<WhereNode> ResolvePredicate(const Predicate& where, const GroupMembers& members,
                                           uint64_t rows, const std::atomic<bool>* cancelled);

// The rows that have no entry in an index, of which `member` is the only shard, or the first.
WhereNode AbsentRows(const GroupMembers& members, size_t member, uint64_t rows);
// What all rows of a node satisfy of one index, whose shards are members [first, end): a leaf of
// entries in a set, or several, of different shards, of any of which each row has one. Null where
// the node says no such thing.
const WhereNode* EntriesOf(const WhereNode& node, size_t first, size_t end);
// The leaf of a member in what EntriesOf returns; null where it has none.
const WhereNode* LeafOf(const WhereNode& entries, size_t member);
inline WhereNode* LeafOf(WhereNode& entries, size_t member) {
  return const_cast<WhereNode*>(LeafOf(std::as_const(entries), member));
}
// Whether no row can have several entries in it. Requires Prepare of its shards.
bool IsSingle(const GroupMembers& members, size_t member);
// All of these, which are at least one; none that asks for nothing.
WhereNode AllOf(std::vector<WhereNode> nodes, const GroupMembers& members, uint64_t rows);

}  // namespace cairn
