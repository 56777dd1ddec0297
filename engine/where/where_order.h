#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/where/where_node.h"
#include "engine/where/where_search.h"

namespace cairn {

// What a cursor begins with: of rows in the order of primary keys; of an entry, or of a row without
// any, in the order of an index.
inline constexpr char kByPrimaryKey = 'p', kOfEntry = 'e', kOfAbsent = 'n';

// The cursor behind the row that stands at key i in the order of an index, or, where there is no
// such key, is among those without one. Throws std::bad_alloc.
std::string WhereCursor(const EncodedKeys& keys, size_t i, std::string_view primary_key);

// Rows in the order of an index's keys: by (key, primary key), or its reverse, of the first of a
// row's entries in that order; then those without entries, by primary key. Throws std::bad_alloc.
class WhereOrder {
 public:
  // Of the index whose only shard, or whose first, is `member`. Behind `after`, a cursor, unless
  // that is empty: InvalidArgument unless it is one of this order. `or_at`: or at it. `after` and
  // the others must outlive this.
  // `cancelled` may be null; Sort and Walk return Cancelled once it is set.
  static absl::StatusOr<WhereOrder> Create(const GroupMembers& members, const WhereSearch& search,
                                           size_t member, Order order, std::string_view after,
                                           bool or_at, const std::atomic<bool>* cancelled);

  // Leaves the first `limit` rows behind the cursor, in order.
  absl::Status Sort(uint64_t limit, std::vector<RowId>* rows) const;
  // Finds the first `limit` rows of a predicate behind the cursor, by way of the entries.
  absl::Status Walk(const WhereNode& node, uint64_t limit, std::vector<RowId>* rows) const;
  // Appends the keys that rows stand at, of those that have any, which come first, and returns how
  // many these are.
  size_t AppendKeys(absl::Span<const RowId> rows, EncodedKeys* keys) const;
  // The cursor behind a row.
  absl::StatusOr<std::string> CursorBehind(RowId row) const;

 private:
  // One entry, with what it is compared by.
  struct Entry {
    uint32_t member = 0;
    uint64_t place = 0;  // twice the base's entries before it, and for one of the base 1 more
    uint32_t run = 0;
    Position position = 0;
    RowId row = kNoRow;  // of the group
  };

  WhereOrder(const GroupMembers& members, const WhereSearch& search, size_t member, Order order)
      : members_(members),
        search_(search),
        first_(member),
        end_(member + members[member]->shards()),
        descending_(order == Order::kDescending) {}

  PhysicalType kind() const { return members_[first_]->codec().kind(); }
  const SortedRun& RunOf(size_t member, uint32_t run) const;
  bool Less(const Entry& a, const Entry& b) const;
  // In the order asked for.
  bool Before(const Entry& a, const Entry& b) const {
    return descending_ ? Less(b, a) : Less(a, b);
  }
  // The first entry of a row; false where it has none.
  bool FirstEntry(RowId row, Entry* first) const;
  // Less than, equal to or greater than 0 as the entry stands to the cursor's place.
  int CompareWithCursor(size_t member, uint32_t run, Position position, RowId row) const;
  bool IsBehindCursor(const Entry& entry) const {
    if (!has_cursor_) return true;
    if (cursor_is_absent_) return false;
    const int compared = CompareWithCursor(entry.member, entry.run, entry.position, entry.row);
    return compared == 0 ? or_at_ : descending_ == (compared < 0);
  }
  // `seen`: rows with several entries that were found in a shard before.
  template <typename Key>
  absl::Status WalkEntries(size_t member, const WhereNode& node, uint64_t limit,
                           absl::flat_hash_set<RowId>* seen, std::vector<RowId>* rows) const;

  const GroupMembers& members_;
  const WhereSearch& search_;
  const size_t first_, end_;  // the index's shards
  const bool descending_;
  bool is_single_ = false;  // no row has several entries
  bool or_at_ = false;
  bool has_cursor_ = false;
  bool cursor_is_absent_ = false;  // it is among the rows without entries
  uint64_t cursor_number_ = 0;     // its key
  std::string_view cursor_bytes_;
  RowSpace::Place cursor_place_;
  const std::atomic<bool>* cancelled_ = nullptr;
};

}  // namespace cairn
