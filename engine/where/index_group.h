#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/index_group.h"
#include "cairn/query.h"
#include "engine/where/row_space.h"
#include "engine/where/where_node.h"

namespace cairn {

// Rows in an order, with the keys by which they are ordered.
struct OrderedRows {
  std::vector<RowId> rows;
  EncodedKeys keys;  // if ordered by an index: keys of the rows that have one, which come first
  StringList primary_keys;
  WherePlan plan;
};

// A group with a single numbering of rows. A sharded group is the only other kind of group; it has
// a WholeGroup per shard.
class WholeGroup : public IndexGroup {
 public:
  virtual const std::shared_ptr<const RowSpace>& space() const = 0;
  // Finds the first `most` rows after the place WhereOptions::after, or including that place if
  // `or_at`. Ignores the options' columns and limit. Errors: those of Find. Throws std::bad_alloc.
  virtual absl::Status FindOrdered(const Predicate& where, const WhereOptions& options, bool or_at,
                                   uint64_t most, OrderedRows* found) const = 0;
};

// Returns a checksum of the names and specs of a group's members, in any order, for cursors. Throws
// std::bad_alloc.
uint64_t ChecksumOf(const std::vector<IndexGroup::Member>& members);

// MakeCursor returns the cursor after a row's place; `place` is the own cursor of a WholeGroup or a
// shard. PlaceOfCursor returns the place of WhereOptions::after, or "". `members` is ChecksumOf.
// InvalidArgument: the cursor belongs to another predicate, order or group. Throw std::bad_alloc.
std::string MakeCursor(uint64_t members, const Predicate& where, const WhereOptions& options,
                       std::string_view place);
absl::StatusOr<std::string> PlaceOfCursor(uint64_t members, const Predicate& where,
                                          const WhereOptions& options);

// `group` has the members' versions; those of a sharded member are adjacent. `space` has all rows.
std::shared_ptr<const WholeGroup> MakeWholeGroup(std::vector<IndexGroup::Member> members,
                                                 GroupMembers group,
                                                 std::shared_ptr<const RowSpace> space);

// Makes the sharded group of these groups, one per shard, which have versions of the same members.
std::shared_ptr<const IndexGroup> OverShards(std::vector<IndexGroup::Member> members,
                                             std::vector<std::shared_ptr<const WholeGroup>> shards);

// Implements IndexGroup::Create. If `after`, a group or null, has the same indexes, its knowledge
// about their rows is reused.
absl::StatusOr<std::shared_ptr<const IndexGroup>> CreateIndexGroup(
    std::vector<IndexGroup::Member> members, const std::shared_ptr<const IndexGroup>& after);

}  // namespace cairn
