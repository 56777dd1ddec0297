#pragma once

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
#include "index/machine/stop_flag.h"

namespace cairn {

// The first byte of a cursor: rows in primary-key order; in the order of an index, a row with an
// entry or one without.
inline constexpr char kByPrimaryKey = 'p', kOfEntry = 'e', kOfAbsent = 'n';

// Returns the cursor after the row that has key i in the order of an index. If there is no key i,
// the row has no key in the index. Throws std::bad_alloc.
std::string WhereCursor(const EncodedKeys& keys, size_t i, std::string_view primary_key);

// Orders rows by an index's keys: by the (key, primary key) of a row's first entry in that order,
// or descending. Rows without entries follow, by primary key. Throws std::bad_alloc.
class WhereOrder {
 public:
  // Creates the order of the index whose only or first shard is `member`. It starts after the
  // cursor `after` unless that is empty; if `or_at`, it includes the cursor's place.
  // InvalidArgument: `after` is not a cursor of this order. `after` and the other arguments must
  // outlive this. Sort and Walk return the error of `stop` once it has one.
  static absl::StatusOr<WhereOrder> Create(const GroupMembers& members, const WhereSearch& search,
                                           size_t member, Order order, std::string_view after,
                                           bool or_at, const StopCondition& stop);

  // Keeps the first `limit` rows after the cursor, in order.
  absl::Status Sort(uint64_t limit, std::vector<RowId>* rows) const;
  // Finds the first `limit` rows of a predicate after the cursor, by walking the index's entries.
  absl::Status Walk(const WhereNode& node, uint64_t limit, std::vector<RowId>* rows) const;
  // Appends the keys of the leading rows that have one. Rows with keys must come first. Returns the
  // number of keys.
  size_t AppendKeys(absl::Span<const RowId> rows, EncodedKeys* keys) const;
  // Returns the cursor after a row.
  absl::StatusOr<std::string> CursorBehind(RowId row) const;

 private:
  // One entry, with the values by which entries are compared.
  struct Entry {
    uint32_t member = 0;
    uint64_t place = 0;  // 2 * (number of base entries before it), plus 1 for a base entry
    uint32_t run = 0;
    Position position = 0;
    RowId row = kNoRow;  // row of the group
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
  // Compares in the requested order.
  bool Before(const Entry& a, const Entry& b) const {
    return descending_ ? Less(b, a) : Less(a, b);
  }
  // Finds the first entry of a row. Returns false if it has none.
  bool FirstEntry(RowId row, Entry* first) const;
  // Returns a number less than, equal to or greater than 0 if the entry is before, at or after the
  // cursor's place.
  int CompareWithCursor(size_t member, uint32_t run, Position position, RowId row) const;
  bool IsBehindCursor(const Entry& entry) const {
    if (!has_cursor_) return true;
    if (cursor_is_absent_) return false;
    const int compared = CompareWithCursor(entry.member, entry.run, entry.position, entry.row);
    return compared == 0 ? or_at_ : descending_ == (compared < 0);
  }
  // `seen`: rows with several entries that were found in an earlier shard.
  template <typename Key>
  absl::Status WalkEntries(size_t member, const WhereNode& node, uint64_t limit,
                           absl::flat_hash_set<RowId>* seen, std::vector<RowId>* rows) const;

  const GroupMembers& members_;
  const WhereSearch& search_;
  const size_t first_, end_;  // range of the index's shards
  const bool descending_;
  bool is_single_ = false;  // no row has several entries
  bool or_at_ = false;
  bool has_cursor_ = false;
  bool cursor_is_absent_ = false;  // the cursor is among the rows without entries
  uint64_t cursor_number_ = 0;     // the cursor's key
  std::string_view cursor_bytes_;
  RowSpace::Place cursor_place_;
  StopCondition stop_;
};

}  // namespace cairn
