#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/predicate.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"

namespace cairn {

// How the rows of a predicate are found.
enum class WhereStrategy : uint8_t {
  kAuto,    // the strategy with the lowest predicted time
  kGather,  // reads the rows of the most selective comparison and tests each for the other
            // comparisons
  kBitmap,  // builds one bitmap of rows per comparison and combines them
  kScan,    // tests all rows in row order, by the positions of their entries
  kWalk,    // reads the entries of WhereOptions::order_by in order until the limit is reached
};
// Returns "auto", "gather", "bitmap", "scan" or "walk".
std::string_view WhereStrategyName(WhereStrategy strategy);

// Options of IndexGroup::Find, Count and Explain.
struct WhereOptions {
  // The name of the index whose key order the rows have. Empty: primary-key order. A row with
  // several keys is listed at the first of them. Rows without a key are last in either order, in
  // primary-key order. Rows with equal keys are in primary-key order, or in its reverse if `order`
  // is descending.
  std::string order_by = {};
  Order order = Order::kAscending;
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // rows; 0: no rows and no cursor
  // The WhereResult::cursor of an earlier call with the same predicate and order that reached its
  // limit; the result continues after it. InvalidArgument for any other cursor. A cursor stays
  // valid while the database changes. Empty: start at the first row.
  std::string after = {};
  // Columns to return for each row, by name. An included column of an index is "price", or
  // "age.price" if several indexes include that name. A key is "age", or "place.part2" for an index
  // with several parts. InvalidArgument: there is no such column, or a row has several keys in it.
  std::vector<std::string> columns = {};
  // InvalidArgument if the strategy does not support the predicate, for example kWalk without
  // order_by.
  WhereStrategy strategy = WhereStrategy::kAuto;
  // End the call before it is complete: see QueryOptions. The final sort of the rows is not
  // interrupted, nor is work that is done once and kept, such as the first use of an index in a
  // group.
  const std::atomic<bool>* cancelled = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
};

// How a predicate is executed.
struct WherePlan {
  // A comparison, or a set of adjacent comparisons of one index.
  struct Comparison {
    std::string text;  // as Predicate::ToString, or a set of adjacent comparisons
    std::string index;
    uint64_t rows = 0;  // exact number of entries that satisfy it
    std::string how;    // "listed", "tested", "bitmap", "scanned", "walked"
  };
  // A strategy that supports the predicate.
  struct Candidate {
    WhereStrategy strategy;
    absl::Duration predicted;  // time
  };
  WhereStrategy strategy = WhereStrategy::kAuto;  // the chosen strategy
  double expected_rows = 0;                       // assumes independent comparisons
  std::vector<Comparison> comparisons;
  std::vector<Candidate> candidates;  // strategies that support the predicate, fastest first

  std::string ToString() const;  // several lines of text
};

// The rows for which a predicate is true. A failed call leaves it in an unspecified valid state.
struct WhereResult : RowList {        // rows of the group, in the requested order
  std::vector<ColumnValues> columns;  // one per WhereOptions::columns; value j is of row j
  std::string cursor;                 // for WhereOptions::after; empty if there are no more rows
  WherePlan plan;
};

// A column to sort groups by. Columns are numbered from 0: first the group_by columns, then the
// aggregates.
struct GroupOrder {
  size_t column = 0;
  Order order = Order::kAscending;
};

// Parses a sort order. Each text is a column name, a blank, and "asc" or "desc" in either case.
// `columns` are the names of all result columns. InvalidArgument for a malformed text or an unknown
// name.
absl::StatusOr<std::vector<GroupOrder>> ParseGroupOrder(absl::Span<const std::string> texts,
                                                        absl::Span<const std::string> columns);

// Options of IndexGroup::GroupBy.
struct GroupByOptions {
  // Columns, named as in WhereOptions::columns. Rows with equal values in all of them form a group.
  // Null is a value here. Floating-point values are equal as in keys: all NaNs are equal, but -0
  // and 0 differ. Empty: all rows form one group, even if there are no rows.
  std::vector<std::string> group_by = {};
  // The order of the groups. Groups that are equal in all of these columns are in the order of
  // their group_by values, which is also the order if this is empty. Null is less than every other
  // value; other values compare as keys do.
  std::vector<GroupOrder> order_by = {};
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // groups; 0: no groups and no cursor
  // The GroupByResult::cursor of an earlier call with the same predicate, aggregates, group_by and
  // order_by that reached its limit; the result continues after it. InvalidArgument for any other
  // cursor. Empty: start at the first group.
  std::string after = {};
  WhereStrategy strategy = WhereStrategy::kAuto;  // how rows are found; not kWalk
  const std::atomic<bool>* cancelled = nullptr;   // see WhereOptions
  absl::Time deadline = absl::InfiniteFuture();
};

// The result of IndexGroup::GroupBy. Plain data. A failed call leaves it in an unspecified valid
// state.
struct GroupByResult {
  size_t size = 0;                   // number of groups
  std::vector<ColumnValues> keys;    // one per group_by column; value j is of group j
  std::vector<ColumnValues> values;  // one per aggregate; value j is of group j
  std::string cursor;                // for GroupByOptions::after; empty if there are no more groups
  uint64_t rows = 0;                 // number of rows for which the predicate is true
  WherePlan plan;
};

// Several indexes of one column family, at one sequence number, that are queried together.
//
// A row has one id in the group. Indexes of one build (SecondaryIndex::BuildAll) share their row
// ids, and the group uses the same ids. For other indexes, Create merges the primary keys once, in
// linear time; each such index then takes 8 bytes of memory per row. Rows added since the bases
// were built have higher ids. Ids are valid only for this group.
//
// Members may be range-sharded: the rows of all their shards are numbered together. If a member is
// sharded by database with several shards, all members must be, and the group is sharded: shard s
// of each member is of the same database. Rows that are equal in the requested order are sorted by
// shard.
//
// Immutable and thread-safe. Auxiliary structures are built at their first use: 4 bytes per row for
// each index in which rows are tested. No function throws.
class IndexGroup {
 public:
  // An index of the group.
  struct Member {
    std::shared_ptr<const SecondaryIndex> index;
    std::string name = {};  // used in predicates; empty: the name in the spec
  };

  // Creates a group of the current versions of the indexes. Errors: InvalidArgument if there is no
  // index, if an index is null, or if a name is missing or used twice. FailedPrecondition, naming
  // two indexes, if they differ in database, column family or sequence number. FailedPrecondition
  // if an index sharded by database is combined with one that is not, or that has other databases.
  // FailedPrecondition for an index from IndexedDB::Index; use IndexedDB::PinGroup.
  // ResourceExhausted if there are more than 2^32 - 2 rows, per shard in a sharded group, or if
  // memory runs out. DataLoss if an index file is corrupt.
  static absl::StatusOr<std::shared_ptr<const IndexGroup>> Create(std::vector<Member> members);

  virtual ~IndexGroup() = default;

  // Returns the indexes, in the order that Create was given, with their names.
  virtual const std::vector<Member>& members() const = 0;
  // Returns whether the group is sharded.
  virtual bool in_shards() const { return false; }
  // Returns the largest RowId of any shard plus 1.
  virtual RowId end_row() const = 0;

  // Returns the number of rows for which `where` is true. Uses only `strategy`, `cancelled` and
  // `deadline` of `options`. If `plan` is not null, sets *plan. Errors: Cancelled;
  // DeadlineExceeded; InvalidArgument,
  // naming the index and the expected value, for an unknown index and for a key of the wrong type
  // or number of parts. InvalidArgument for a condition that an index cannot decide
  // (docs/queries.md): IS NULL in an index with nulls=skip, unless another index restricts the
  // rows; and orders and negations over keys of several parts that may be null.
  virtual absl::StatusOr<uint64_t> Count(const Predicate& where, const WhereOptions& options = {},
                                         WherePlan* plan = nullptr) const = 0;
  // Sets *matches to the rows for which `where` is true, with their columns, the plan and, if the
  // limit was reached, a cursor. Errors: those of Count; InvalidArgument for an unknown column or
  // order_by, a row with several keys in a column, and an invalid cursor.
  virtual absl::Status Find(const Predicate& where, const WhereOptions& options,
                            WhereResult* matches) const = 0;
  // Groups the rows of a predicate by their values in columns, and computes aggregates of each
  // group. Each row counts once. Columns are named as in WhereOptions::columns. kCountDistinct
  // takes a column and counts its distinct values that are not null; Aggregate defines the other
  // functions. Rows are read a few at a time, but all groups are in memory, whatever the limit.
  // Errors: those of Count and Columns; InvalidArgument for a column whose type a function does not
  // support; OutOfRange, naming the group, if a sum of integers of any group, returned or not, does
  // not fit in 64 bits; ResourceExhausted.
  virtual absl::Status GroupBy(const Predicate& where, absl::Span<const Aggregate> aggregates,
                               const GroupByOptions& options, GroupByResult* groups) const;
  // Returns the plan that Find would use, without executing it. Errors: those of Count.
  virtual absl::StatusOr<WherePlan> Explain(const Predicate& where,
                                            const WhereOptions& options = {}) const = 0;

  // Appends the primary key of each row: of row ids, or of all rows of a WhereResult. Errors:
  // OutOfRange for an id that does not exist.
  virtual absl::Status PrimaryKeys(RowSpan rows, StringList* primary_keys) const = 0;
  // Sets *columns to the values of the rows in the named columns (WhereOptions::columns), one
  // ColumnValues per name. A value is null if the index has no entry of the row. Without rows, the
  // columns are empty and have their types. Errors: those of PrimaryKeys; InvalidArgument if there
  // is no such column or a row has several keys in it.
  virtual absl::Status Columns(RowSpan rows, absl::Span<const std::string> names,
                               std::vector<ColumnValues>* columns) const = 0;
  // Sets member_rows[i] to the id of rows[i] in member number `member`, or to kNoGlobalRow if the
  // member does not contain the row. If several shards of a member contain a row, the first of them
  // is used. Errors: InvalidArgument for an unknown member or different sizes; OutOfRange for an id
  // that does not exist.
  virtual absl::Status RowsOf(size_t member, RowSpan rows,
                              absl::Span<GlobalRowId> member_rows) const = 0;

 protected:
  IndexGroup() = default;
  IndexGroup(const IndexGroup&) = delete;
  IndexGroup& operator=(const IndexGroup&) = delete;
};

}  // namespace cairn
