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
  kAuto,    // whichever is predicted to be the fastest
  kGather,  // the rows of the most selective comparison, each tested for the others
  kBitmap,  // a bitmap of rows a comparison, combined
  kScan,    // all rows in their order, by where their entries are
  kWalk,    // the entries of WhereOptions::order_by in their order, until the limit is reached
};
std::string_view WhereStrategyName(WhereStrategy strategy);  // "auto", "gather", …

struct WhereOptions {
  // The index in the order of whose keys rows come, by name; a row that has several comes where it
  // comes first, and those that have none come last, whichever the order. Rows of equal keys are in
  // the order of primary keys, or its reverse. Empty: all are.
  std::string order_by;
  Order order = Order::kAscending;
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // 0: no rows, and no cursor
  // Continues after an earlier answer to the same predicate and order that reached its limit
  // (WhereResult::cursor): InvalidArgument for the cursor of another. It stays good while the
  // database is written to. Empty: from the first row on.
  std::string after;
  // Columns of the rows, by name: what an index of the group includes, "price", or "age.price"
  // where several include one of that name; and keys, "age", or "place.part2" of an index of
  // several parts. InvalidArgument for another, and for a row that has several keys there.
  std::vector<std::string> columns;
  // InvalidArgument where it cannot answer the predicate: kWalk without order_by.
  WhereStrategy strategy = WhereStrategy::kAuto;
  // The call returns Cancelled some milliseconds after another thread sets this. Null: it cannot be
  // cancelled. Steps that are done once and kept, such as the first use of an index in a group, and
  // sorting the rows found are not interrupted.
  const std::atomic<bool>* cancelled = nullptr;
};

// How a predicate is answered.
struct WherePlan {
  struct Comparison {
    std::string text;  // as Predicate says it, or as it was put together with its neighbours
    std::string index;
    uint64_t rows = 0;  // entries that satisfy it, exactly
    std::string how;    // "listed", "tested", "bitmap", "scanned", "walked"
  };
  struct Candidate {
    WhereStrategy strategy;
    double nanoseconds = 0;  // predicted
  };
  WhereStrategy strategy = WhereStrategy::kAuto;  // that was taken
  double expected_rows = 0;                       // taking comparisons to be independent
  std::vector<Comparison> comparisons;
  std::vector<Candidate> candidates;  // those that could answer, the fastest first

  std::string ToString() const;  // a line each
};

// The rows that a predicate is true of.
struct WhereResult {
  std::vector<RowId> rows;            // of the group, in the order asked for
  std::vector<uint32_t> shards;       // of a group in shards: each row's; empty for any other
  std::vector<ColumnValues> columns;  // one for each of WhereOptions::columns
  std::string cursor;                 // for WhereOptions::after; empty where there is no more
  WherePlan plan;

  // Row j as one number, whatever the group.
  GlobalRowId global_row(size_t j) const {
    return MakeGlobalRowId(shards.empty() ? 0 : shards[j], rows[j]);
  }
};

// What groups are ordered by: column number `column` of the answer, first those that rows are
// grouped by, then the aggregates, from 0 on.
struct GroupOrder {
  size_t column = 0;
  Order order = Order::kAscending;
};

// The order that texts say: each a name of one of the columns, then asc or desc, in either case,
// behind a blank. InvalidArgument for another name.
absl::StatusOr<std::vector<GroupOrder>> ParseGroupOrder(absl::Span<const std::string> texts,
                                                        absl::Span<const std::string> columns);

struct GroupByOptions {
  // Columns, as WhereOptions::columns: rows with equal values in all of them are a group. Null is a
  // value here; floats are equal as keys are, every NaN, but -0 and 0 not. Empty: all rows are one
  // group, even if there are none.
  std::vector<std::string> group_by = {};
  // Groups that are equal in all of these come in the order of the values that they
  // are grouped by, which alone orders them if this is empty. Null is less than all other values,
  // and else they are ordered as keys are.
  std::vector<GroupOrder> order_by = {};
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // of groups; 0: none, and no cursor
  // Continues after an earlier answer to the same predicate, aggregates, group_by and order_by that
  // reached its limit (GroupByResult::cursor): InvalidArgument for the cursor of another. Empty:
  // from the first group on.
  std::string after = {};
  WhereStrategy strategy = WhereStrategy::kAuto;  // how rows are found; not kWalk
  const std::atomic<bool>* cancelled = nullptr;   // as of WhereOptions
};

// Groups of rows and what they come to. Plain data; a call that fails leaves it in
// an unspecified valid state.
struct GroupByResult {
  size_t size = 0;                   // groups
  std::vector<ColumnValues> keys;    // one a column to group by: value j is group j's
  std::vector<ColumnValues> values;  // one an aggregate, likewise
  std::string cursor;                // for GroupByOptions::after; empty where there is no more
  uint64_t rows = 0;                 // that the predicate is true of
  WherePlan plan;
};

// Several indexes of one column family, of one state, that are asked together.
//
// A row has one id in the group. Indexes of one build (SecondaryIndex::BuildAll) share their rows,
// and their ids are the group's; for others a translation is made once, in one pass over the
// primary keys, which takes 8 bytes a row for each. Rows that came since have ids behind all these.
// Ids hold for this group and no other.
//
// Indexes in shards by key range are members as any are: the rows of all their shards are numbered
// together. Indexes in several shards by source are members together, and make a group in shards:
// shard s of each is of one database, which is asked as a group of its own, and rows are named with
// their shards (WhereResult::shards), by which rows of one place in an order are ordered.
//
// Immutable and thread-safe. What is needed beside the indexes is made at its first use: 4 bytes a
// row for each index that rows are tested in. No exception leaves.
class IndexGroup {
 public:
  struct Member {
    std::shared_ptr<const SecondaryIndex> index;
    std::string name = {};  // what predicates call it; empty: its spec's
  };

  // Each index at its present version. InvalidArgument without an index, for a name that is missing
  // or there twice; FailedPrecondition, naming both, for indexes of different databases, column
  // families or sequence numbers, or in shards by source with others that are not, or have other
  // sources; and for one of IndexedDB::Index, of which IndexedDB::PinGroup gives the state.
  // ResourceExhausted beyond 4,294,967,294 rows, in each shard of a group in shards. DataLoss.
  static absl::StatusOr<std::shared_ptr<const IndexGroup>> Create(std::vector<Member> members);

  virtual ~IndexGroup() = default;

  virtual const std::vector<Member>& members() const = 0;
  // Whether rows are named with their shards.
  virtual bool in_shards() const { return false; }
  // One more than the largest id of a row, in any shard.
  virtual RowId end_row() const = 0;

  // The rows of a predicate, counted or listed. InvalidArgument, naming the index and what was
  // expected, for an index that there is not, a key of the wrong type or number of parts, and what
  // an index cannot tell (docs/queries.md): IS NULL of nulls=skip indexes where no other index
  // bounds it, and orders and negations over keys of several parts that may be null.
  virtual absl::StatusOr<uint64_t> Count(const Predicate& where, const WhereOptions& options = {},
                                         WherePlan* plan = nullptr) const = 0;
  virtual absl::Status Find(const Predicate& where, const WhereOptions& options,
                            WhereResult* matches) const = 0;
  // Groups the rows of a predicate by their values in columns, and computes
  // aggregates of each group: of rows, each of which counts once. Columns are named as in
  // WhereOptions::columns; kCountDistinct takes one, and counts its different values without null;
  // else Aggregate says what is computed of which types. The rows' columns are read a few at a
  // time; groups are in memory, all of them, whatever the limit is. InvalidArgument as Count and
  // Columns, and for a column whose type a function does not take; OutOfRange, naming the group,
  // for a sum of integers that does not fit 64 bits, whether the group is within the limit or not.
  virtual absl::Status GroupBy(const Predicate& where, absl::Span<const Aggregate> aggregates,
                               const GroupByOptions& options, GroupByResult* groups) const;
  // How it would be answered.
  virtual absl::StatusOr<WherePlan> Explain(const Predicate& where,
                                            const WhereOptions& options = {}) const = 0;

  // Appends the primary key of each row. OutOfRange for an id that is no row's. Of a group in
  // shards this is InvalidArgument: the method below takes their shards, of any group, where these
  // may be empty.
  virtual absl::Status PrimaryKeys(absl::Span<const RowId> rows,
                                   StringList* primary_keys) const = 0;
  virtual absl::Status PrimaryKeys(absl::Span<const uint32_t> shards, absl::Span<const RowId> rows,
                                   StringList* primary_keys) const;
  // Sets *columns to the values that these rows have in the columns of these names
  // (WhereOptions::columns); null for a row that the index does not know. Rows are named as above.
  // Without rows they are empty columns of the types.
  virtual absl::Status Columns(absl::Span<const RowId> rows, absl::Span<const std::string> names,
                               std::vector<ColumnValues>* columns) const = 0;
  virtual absl::Status Columns(absl::Span<const uint32_t> shards, absl::Span<const RowId> rows,
                               absl::Span<const std::string> names,
                               std::vector<ColumnValues>* columns) const;
  // The rows' ids in a member, by its number; kNoRow for one that it does not know. InvalidArgument
  // for a member in several shards, or of a group in shards: the method below names rows with their
  // shards, in the group and in the member, whatever these are, and has kNoGlobalRow for kNoRow. A
  // row that several shards of a member have is named in the first of these.
  virtual absl::Status RowsOf(size_t member, absl::Span<const RowId> rows,
                              absl::Span<RowId> member_rows) const = 0;
  virtual absl::Status RowsOf(size_t member, absl::Span<const GlobalRowId> rows,
                              absl::Span<GlobalRowId> member_rows) const = 0;

 protected:
  IndexGroup() = default;
  IndexGroup(const IndexGroup&) = delete;
  IndexGroup& operator=(const IndexGroup&) = delete;
};

}  // namespace cairn
