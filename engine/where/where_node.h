#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/where/predicate.h"
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
// asks the same. `rows` are those of the group. InvalidArgument as IndexGroup::Count. Throws
// std::bad_alloc.
absl::StatusOr<WhereNode> ResolvePredicate(const Predicate& where, const GroupMembers& members,
                                           uint64_t rows);

// A leaf of the rows that have no entry in a member, or of those that have any.
WhereNode AbsentRows(const GroupMembers& members, size_t member, uint64_t rows);
// All of these, which are at least one; none that asks for nothing.
WhereNode AllOf(std::vector<WhereNode> nodes, const GroupMembers& members, uint64_t rows);

}  // namespace cairn
