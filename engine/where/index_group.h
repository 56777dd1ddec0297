#pragma once

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

// Rows in an order, and what stands for each in it.
struct OrderedRows {
  std::vector<RowId> rows;
  EncodedKeys keys;  // in the order of an index: of the first rows, all those that have one
  StringList primary_keys;
  WherePlan plan;
};

// A group whose rows have one numbering: any but one in shards, which has such a group of each.
class WholeGroup : public IndexGroup {
 public:
  virtual const std::shared_ptr<const RowSpace>& space() const = 0;
  // The first `most` rows after the place WhereOptions::after, or at it, too, if `or_at`; the
  // options' columns and limit are not used. Errors as Find's. Throws std::bad_alloc.
  virtual absl::Status FindOrdered(const Predicate& where, const WhereOptions& options, bool or_at,
                                   uint64_t most, OrderedRows* found) const = 0;
};

// The cursor after a row's place, which is a WholeGroup's or a shard's own cursor, and the place of
// WhereOptions::after, or "". Errors: InvalidArgument if it is of another predicate or order. Throw
// std::bad_alloc.
std::string MakeCursor(const Predicate& where, const WhereOptions& options, std::string_view place);
absl::StatusOr<std::string> PlaceOfCursor(const Predicate& where, const WhereOptions& options);

// `group`: the members' versions, those of a member in shards side by side; `space` is of all.
std::shared_ptr<const WholeGroup> MakeWholeGroup(std::vector<IndexGroup::Member> members,
                                                 GroupMembers group,
                                                 std::shared_ptr<const RowSpace> space);

// The group in shards that has these, one a shard, which are of versions of the same members.
std::shared_ptr<const IndexGroup> OverShards(std::vector<IndexGroup::Member> members,
                                             std::vector<std::shared_ptr<const WholeGroup>> shards);

// IndexGroup::Create, taking over from `after`, a group or null, what rows of the same indexes it
// has found.
absl::StatusOr<std::shared_ptr<const IndexGroup>> CreateIndexGroup(
    std::vector<IndexGroup::Member> members, const std::shared_ptr<const IndexGroup>& after);

}  // namespace cairn
