#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/where/where_node.h"
#include "engine/where/where_search.h"

namespace cairn {

// Rows in the order of a member's keys: by (key, primary key), or its reverse, of the first of a
// row's entries in that order; then those without entries, by primary key. Throws std::bad_alloc.
class WhereOrder {
 public:
  // Behind `after`, a cursor, unless that is empty: InvalidArgument unless it is one of this order.
  // `after` and the others must outlive this.
  static absl::StatusOr<WhereOrder> Create(const GroupMembers& members, const WhereSearch& search,
                                           size_t member, Order order, std::string_view after);

  // Leaves the first `limit` rows behind the cursor, in order.
  void Sort(uint64_t limit, std::vector<RowId>* rows) const;
  // Finds the first `limit` rows of a predicate behind the cursor, by way of the entries.
  absl::Status Walk(const WhereNode& node, uint64_t limit, std::vector<RowId>* rows) const;
  // The cursor behind a row.
  absl::StatusOr<std::string> CursorBehind(RowId row) const;

 private:
  // One entry, with what it is compared by.
  struct Entry {
    uint64_t place = 0;  // twice the base's entries before it, and for one of the base 1 more
    uint32_t run = 0;
    Position position = 0;
    RowId row = kNoRow;  // of the group
  };

  WhereOrder(const GroupMembers& members, const WhereSearch& search, size_t member, Order order)
      : members_(members),
        search_(search),
        number_(member),
        member_(*members[member]),
        descending_(order == Order::kDescending) {}

  const SortedRun& RunOf(uint32_t run) const;
  bool Less(const Entry& a, const Entry& b) const;
  // In the order asked for.
  bool Before(const Entry& a, const Entry& b) const {
    return descending_ ? Less(b, a) : Less(a, b);
  }
  // The first entry of a row; false where it has none.
  bool FirstEntry(RowId row, Entry* first) const;
  // Less than, equal to or greater than 0 as the entry stands to the cursor's place.
  int CompareWithCursor(uint32_t run, Position position, RowId row) const;
  bool IsBehindCursor(const Entry& entry) const {
    if (!has_cursor_) return true;
    if (cursor_is_absent_) return false;
    const int compared = CompareWithCursor(entry.run, entry.position, entry.row);
    return descending_ ? compared < 0 : compared > 0;
  }
  template <typename Key>
  absl::Status WalkEntries(const WhereNode& node, uint64_t limit, std::vector<RowId>* rows) const;

  const GroupMembers& members_;
  const WhereSearch& search_;
  const size_t number_;
  const GroupMember& member_;
  const bool descending_;
  bool has_cursor_ = false;
  bool cursor_is_absent_ = false;  // it is among the rows without entries
  uint64_t cursor_number_ = 0;     // its key
  std::string_view cursor_bytes_;
  RowSpace::Place cursor_place_;
};

}  // namespace cairn
