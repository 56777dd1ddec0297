#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"

namespace cairn {

// How an index executes a batch, after Kim et al., FAST (SIGMOD 2010), section 7. The strategies
// trade the latency of a batch for throughput.
enum class Strategy : uint8_t {
  kUnbuffered,  // in the order of the batch
  kBuffered,    // partitions the queries by key range and searches one partition after another
  kSortBased,   // sorts the batch first
};

// The order of the results of a batch.
enum class ResultOrder : uint8_t {
  kCaller,  // result i is of keys[i]
  kKey,     // sorted by key, or partitioned by key range if the strategy does not sort
};

struct Explain;  // defined below

// A batch of physical keys: a typed view that owns nothing. The keys must outlive every call that
// gets the batch. Cheap to copy.
class KeyBatch {
  template <PhysicalType kKind>
  using Kind = std::integral_constant<PhysicalType, kKind>;
  static Kind<PhysicalType::kU32> KindOf(const uint32_t*);
  static Kind<PhysicalType::kU64> KindOf(const uint64_t*);
  static Kind<PhysicalType::kBytes> KindOf(const std::string_view*);

 public:
  KeyBatch() = default;  // an empty batch, accepted for any type

  // NOLINTBEGIN

  // Refers to the keys of a vector, span or array of uint32_t, uint64_t or std::string_view.
  template <typename Keys,
            PhysicalType kKind = decltype(KindOf(std::data(std::declval<const Keys&>())))::value>
  KeyBatch(const Keys& keys) : kind_(kKind), size_(std::size(keys)), keys_(std::data(keys)) {}
  // NOLINTEND

  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Returns the keys. Requires kind() to match, or an empty batch.
  template <typename Key>
  absl::Span<const Key> as() const {
    return {static_cast<const Key*>(keys_), size_};
  }
  absl::Span<const uint32_t> u32() const { return as<uint32_t>(); }
  absl::Span<const uint64_t> u64() const { return as<uint64_t>(); }
  absl::Span<const std::string_view> bytes() const { return as<std::string_view>(); }

  // Returns keys [first, first + count). Requires first + count <= size().
  KeyBatch Slice(size_t first, size_t count) const;

 private:
  PhysicalType kind_ = PhysicalType::kU32;
  size_t size_ = 0;
  const void* keys_ = nullptr;
};

// Physical keys that own their bytes. KeyCodec encodes into one, and scans return keys in one.
// Reusable: Clear() keeps the capacity. Not thread-safe. Methods that add keys throw
// std::bad_alloc.
class EncodedKeys {
 public:
  explicit EncodedKeys(PhysicalType kind = PhysicalType::kU32) : kind_(kind) {}

  PhysicalType kind() const { return kind_; }
  size_t size() const;
  bool empty() const { return size() == 0; }

  // Removes all keys and sets the type of the keys to come.
  void Clear(PhysicalType kind);

  // Removes the keys from index `size` on. Requires size <= size().
  void Truncate(size_t size);

  // Appends one key. Requires kind() to match the method.
  void AppendU32(uint32_t key) { u32_.push_back(key); }
  void AppendU64(uint64_t key) { u64_.push_back(key); }
  void AppendBytes(std::string_view key);
  // Appends `count` zero keys for the caller to overwrite and returns a pointer to the first.
  // Requires kind() to match the method.
  uint32_t* ExtendU32(size_t count);
  uint64_t* ExtendU64(size_t count);

  // Returns key i. Requires kind() to match the method and i < size(). A view of bytes is valid
  // until the object changes.
  uint32_t u32(size_t i) const { return u32_[i]; }
  uint64_t u64(size_t i) const { return u64_[i]; }
  std::string_view bytes(size_t i) const {
    return std::string_view(heap_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

  // Returns all keys. Requires kind() to match the method. Byte strings are contiguous in heap(),
  // and key i is bytes [offsets()[i], offsets()[i + 1]). Valid until the object changes.
  const std::vector<uint32_t>& u32() const { return u32_; }
  const std::vector<uint64_t>& u64() const { return u64_; }
  std::string_view heap() const { return heap_; }
  const std::vector<uint64_t>& offsets() const;

  // Returns a view of all keys, valid until the object changes or is destroyed.
  KeyBatch Batch();

 private:
  PhysicalType kind_;
  std::vector<uint32_t> u32_;
  std::vector<uint64_t> u64_;
  std::string heap_;
  // ends_[i + 1] is the end of key i in heap_. Empty before the first key, so that an object
  // without byte strings allocates no memory.
  std::vector<uint64_t> ends_;
  std::vector<std::string_view> views_;  // built by Batch()
};

// How one end of a range uses its key.
enum class Bound : uint8_t {
  kInclusive,  // the key is in the range
  kExclusive,  // the range ends before the key, or starts after it
  kOpen,       // the range is unbounded at this end; the key is ignored
  kPrefix,     // upper end of byte-string keys only: the range ends after the last key that starts
               // with the lower key; the upper key is ignored
};

// A batch of key ranges: a view that owns nothing. Range i is from lower[i] to upper[i]. A range
// whose lower end is above its upper end is empty, not an error.
struct RangeBatch {
  KeyBatch lower;
  KeyBatch upper;                        // same size and type as `lower`
  absl::Span<const Bound> lower_bounds;  // one per range; empty: `lower_bound` for all
  absl::Span<const Bound> upper_bounds;  // one per range; empty: `upper_bound` for all
  Bound lower_bound = Bound::kInclusive;
  Bound upper_bound = Bound::kExclusive;
  // For SecondaryIndex::Scan, Fetch and AggregateGroups: after[i] is the cursor to resume range i
  // after (FindResult::cursors), or empty to start at the beginning. Empty span: all start there.
  // InvalidArgument for a cursor of another range, order or spec.
  absl::Span<const std::string> after;

  // Returns the ranges [lower[i], upper[i]).
  static RangeBatch HalfOpen(KeyBatch lower, KeyBatch upper);
  // Returns the ranges [keys[i], keys[i]]: all entries of one key.
  static RangeBatch Equal(KeyBatch keys);
  // Returns the ranges of all keys that start with prefixes[i]. The keys must be byte strings.
  static RangeBatch Prefix(KeyBatch prefixes);
  // Returns one range that contains every key.
  static RangeBatch Everything(PhysicalType kind);

  size_t size() const { return lower.size(); }
  PhysicalType kind() const { return lower.kind(); }
  Bound lower_bound_of(size_t i) const {
    return lower_bounds.empty() ? lower_bound : lower_bounds[i];
  }
  Bound upper_bound_of(size_t i) const {
    return upper_bounds.empty() ? upper_bound : upper_bounds[i];
  }
  // Returns ranges [first, first + count). Requires first + count <= size().
  RangeBatch Slice(size_t first, size_t count) const;
};

// The rows of a result. The two halves of each row id are stored apart, so that a row of an
// unsharded index takes 4 bytes. Plain data.
struct RowList {
  std::vector<RowId> row_ids;  // the low halves: rows within their shards
  // The high halves: shards[j] is the shard of row_ids[j]. Empty for an unsharded index and for an
  // OrderedIndex, whose rows are all of shard 0.
  std::vector<uint32_t> shards;

  // Returns the id of row j. Requires j < row_ids.size().
  GlobalRowId row(size_t j) const {
    return MakeGlobalRowId(shards.empty() ? 0 : shards[j], row_ids[j]);
  }
};

// Rows of an index: a view that owns nothing, of row ids or of the rows of a result. The rows must
// outlive every call that gets the view. Cheap to copy.
class RowSpan {
 public:
  RowSpan() = default;

  // NOLINTBEGIN

  RowSpan(absl::Span<const GlobalRowId> rows) : rows_(rows), size_(rows.size()) {}
  RowSpan(const std::vector<GlobalRowId>& rows) : rows_(rows), size_(rows.size()) {}
  RowSpan(std::initializer_list<GlobalRowId> rows) : rows_(rows), size_(rows.size()) {}
  // A low half alone would be a row of shard 0.
  template <typename Id, std::enable_if_t<std::is_same_v<Id, RowId>, int> = 0>
  RowSpan(std::initializer_list<Id> row_ids) = delete;
  RowSpan(const RowList& rows) : RowSpan(rows.row_ids, rows.shards) {}
  // NOLINTEND

  // The two halves of row ids, as in RowList. Functions that get the view return InvalidArgument if
  // the sizes differ, or if there are no shards and the index has several.
  RowSpan(absl::Span<const RowId> row_ids, absl::Span<const uint32_t> shards)
      : row_ids_(row_ids), shards_(shards), size_(row_ids.size()) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Returns the id of row j. Requires j < size().
  GlobalRowId operator[](size_t j) const {
    return row_ids_.empty() ? rows_[j]
                            : MakeGlobalRowId(shards_.empty() ? 0 : shards_[j], row_ids_[j]);
  }
  // Returns rows [first, first + count). Requires first + count <= size(), and halves of one size.
  RowSpan Slice(size_t first, size_t count) const;

  // The halves of the rows, if they are stored apart; otherwise empty.
  absl::Span<const RowId> row_ids() const { return row_ids_; }
  absl::Span<const uint32_t> shards() const { return shards_; }

 private:
  absl::Span<const GlobalRowId> rows_;  // either these or the halves
  absl::Span<const RowId> row_ids_;
  absl::Span<const uint32_t> shards_;
  size_t size_ = 0;
};

// The rows found by each query of a batch, in compressed sparse rows: query i found the rows from
// offsets[i] up to, but not including, offsets[i + 1]. They are ordered by (key, primary key)
// within each query; a descending scan reverses this. Reuse one object for several calls to avoid
// allocations. Plain data. A failed call leaves it in an unspecified valid state.
struct FindResult : RowList {
  std::vector<uint64_t> offsets;  // [queries + 1], offsets[0] = 0

  // Scan with QueryOptions::with_keys: keys[j] is the key of the entry of row j. Otherwise empty.
  EncodedKeys keys;
  // One element per column of QueryOptions::columns. Value j of each belongs to row j.
  std::vector<ColumnValues> columns;
  // SecondaryIndex::Scan with a limit: cursors[i] continues range i (RangeBatch::after); empty if
  // the range is exhausted: leave such a range out of the next call, because an empty cursor starts
  // at its beginning. A cursor stays valid for later versions of the index, as long as they
  // have the same spec, but only for the same range and order. The limit may differ.
  std::vector<std::string> cursors;

  size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  // Returns the rows of query i.
  RowSpan rows(size_t i) const {
    return RowSpan(*this).Slice(offsets[i], offsets[i + 1] - offsets[i]);
  }
  // Returns the rows of query i of an OrderedIndex or of an unsharded index.
  absl::Span<const RowId> operator[](size_t i) const {
    return absl::MakeConstSpan(row_ids).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

// The direction of a scan or of sorted rows.
enum class Order : uint8_t { kAscending, kDescending };

// How to execute a batch. OrderedIndex uses `order`, `limit`, `with_keys`, `cancelled` and
// `deadline`; SecondaryIndex uses every field.
struct QueryOptions {
  Order order = Order::kAscending;  // of the entries of a scan, by (key, primary key)
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // entries per range of a scan; 0: no rows
  bool with_keys = false;  // a scan also returns the key of each entry
  // Included columns (IndexSpec::include) that Find and Scan of a SecondaryIndex return for each
  // row, by name. Values are those of the version that executes the batch. InvalidArgument, listing
  // the included columns, for any other name.
  std::vector<std::string> columns = {};

  // The desired latency of the whole batch. It does not change the route, which is the one with the
  // lowest predicted latency. Explain reports whether the prediction meets the target. A call with
  // a target does not start new calibration measurements.
  absl::Duration latency_target = absl::InfiniteDuration();
  // The keys of the batch, or the lower keys of its ranges, are in ascending order. If that is
  // false, the batch may be slower, but the results are correct.
  bool sorted_input = false;
  // For Find, FindFirst and Contains. With kKey, results are in the order of the keys, which saves
  // restoring the order of the batch. Batch::query_of then maps results to queries.
  ResultOrder result_order = ResultOrder::kCaller;
  // The name of the route to use. Empty: the router chooses. InvalidArgument, listing the available
  // routes, for any other name.
  std::string_view route = {};

  // If not null, another thread may set this to true to cancel the query, which then returns
  // Cancelled within some milliseconds. The flag must outlive the query.
  const std::atomic<bool>* cancelled = nullptr;
  // A query that is not complete at this time returns DeadlineExceeded within some milliseconds. A
  // call after this time returns it at once. A query that ends with an error has no results. These
  // steps are not interrupted: sorting the keys of a batch, the allocation of memory for results,
  // one read of the database, and structures that are built once and kept.
  absl::Time deadline = absl::InfiniteFuture();
};

// The operation of each query in a batch.
enum class Operation : uint8_t {
  kFindFirst,  // the lowest row of the key, or kNoRow
  kContains,   // whether any row has the key
  kFind,       // all rows of the key
  kCount,      // the number of entries in the range
  kScan,       // the rows of the range, with their keys if QueryOptions::with_keys
  // For OrderedIndex only. SecondaryIndex has no positions and returns InvalidArgument.
  kLowerBound,  // the number of entries whose key is less than the key
  kUpperBound,  // the number of entries whose key is at most the key
  kEqualRange,  // both of these
  kPositions,   // the positions where the range begins and ends; equal if the range is empty
};
inline constexpr size_t kIndexOperations = 5;  // operations of a SecondaryIndex: the first five

// Returns "find_first", "contains", "find", "count", "scan", "lower_bound", "upper_bound",
// "equal_range" or "positions".
std::string_view OperationName(Operation operation);

// Returns whether the queries of an operation are ranges. Otherwise they are keys.
inline bool TakesRanges(Operation operation) {
  return operation == Operation::kCount || operation == Operation::kScan ||
         operation == Operation::kPositions;
}

// Queries of one operation and the memory for their results. A view that owns nothing; the queries
// and the results must outlive the call.
//
//   operation                   queries  results
//   kFindFirst                  keys     rows; of an OrderedIndex, values: row ids
//   kContains                   keys     found
//   kFind                       keys     matches
//   kCount                      ranges   counts
//   kScan                       ranges   matches
//   kLowerBound, kUpperBound    keys     values: positions
//   kEqualRange                 keys     values: begin positions; ends: end positions
//   kPositions                  ranges   values: begin positions; ends: end positions
struct Batch {
  Operation operation = Operation::kFindFirst;
  KeyBatch keys = {};
  RangeBatch ranges = {};
  QueryOptions options = {};

  // Results. The spans of the operation must have size() elements, and `matches` must not be null.
  // All others are ignored. The memory of results must not overlap that of keys or other results.
  absl::Span<uint32_t> values = {};
  absl::Span<Position> ends = {};
  // An unsharded SecondaryIndex also takes `values` in place of `rows`, which saves half of the
  // memory. The one that is not used must be empty.
  absl::Span<GlobalRowId> rows = {};
  absl::Span<bool> found = {};
  absl::Span<uint64_t> counts = {};
  FindResult* matches = nullptr;

  // If not empty, size() elements, to which a SecondaryIndex writes that result i is of query
  // query_of[i]; i itself with ResultOrder::kCaller. For operations on keys, ignored for ranges.
  // Required with ResultOrder::kKey.
  absl::Span<uint32_t> query_of = {};
  Explain* explain = nullptr;  // if not null, set to how the batch was routed

  // Create a batch of one operation. A span of results has one element per query.
  static Batch FindFirst(KeyBatch keys, absl::Span<RowId> row_ids,
                         const QueryOptions& options = {}) {
    Batch batch{Operation::kFindFirst, keys, {}, options};
    batch.values = row_ids;
    return batch;
  }
  static Batch FindFirst(KeyBatch keys, absl::Span<GlobalRowId> rows,
                         const QueryOptions& options = {}) {
    Batch batch{Operation::kFindFirst, keys, {}, options};
    batch.rows = rows;
    return batch;
  }
  static Batch Contains(KeyBatch keys, absl::Span<bool> found, const QueryOptions& options = {}) {
    Batch batch{Operation::kContains, keys, {}, options};
    batch.found = found;
    return batch;
  }
  static Batch Find(KeyBatch keys, FindResult* matches, const QueryOptions& options = {}) {
    Batch batch{Operation::kFind, keys, {}, options};
    batch.matches = matches;
    return batch;
  }
  static Batch Count(const RangeBatch& ranges, absl::Span<uint64_t> counts,
                     const QueryOptions& options = {}) {
    Batch batch{Operation::kCount, {}, ranges, options};
    batch.counts = counts;
    return batch;
  }
  static Batch Scan(const RangeBatch& ranges, FindResult* matches,
                    const QueryOptions& options = {}) {
    Batch batch{Operation::kScan, {}, ranges, options};
    batch.matches = matches;
    return batch;
  }
  static Batch LowerBound(KeyBatch keys, absl::Span<Position> positions) {
    Batch batch{Operation::kLowerBound, keys};
    batch.values = positions;
    return batch;
  }
  static Batch UpperBound(KeyBatch keys, absl::Span<Position> positions) {
    Batch batch{Operation::kUpperBound, keys};
    batch.values = positions;
    return batch;
  }
  static Batch EqualRange(KeyBatch keys, absl::Span<Position> begin, absl::Span<Position> end) {
    Batch batch{Operation::kEqualRange, keys};
    batch.values = begin;
    batch.ends = end;
    return batch;
  }
  static Batch Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                         absl::Span<Position> end) {
    Batch batch{Operation::kPositions, {}, ranges};
    batch.values = begin;
    batch.ends = end;
    return batch;
  }

  bool takes_ranges() const { return TakesRanges(operation); }
  // Returns whether results are written to *matches.
  bool gives_matches() const {
    return operation == Operation::kFind || operation == Operation::kScan;
  }
  size_t size() const { return takes_ranges() ? ranges.size() : keys.size(); }
  bool empty() const { return size() == 0; }
  // Returns queries [first, first + count) with their results. Requires first + count <= size().
  // All slices share *matches.
  Batch Slice(size_t first, size_t count) const;
};

// A route is one way to execute a batch: an ordered index, in host memory or on a GPU, and a
// strategy. An open SecondaryIndex has several routes and uses the one with the lowest predicted
// latency for each batch. The name of a route is the device and structure of its ordered index,
// followed by the strategy unless it is unbuffered: "cpu:packed", "cpu:packed+sort_based",
// "gpu:packed".

// How a batch was routed, for human readers. Plain data. Each call overwrites the object that
// Batch::explain points to.
struct Explain {
  // A route of the index, whether it supports the batch or not.
  struct Candidate {
    std::string route;
    absl::Duration predicted;  // infinite if the route does not support the batch
    std::string note;          // why the route was not considered; empty if it was
  };

  Operation operation = Operation::kFindFirst;
  size_t queries = 0;
  double expected_rows = 0;           // of the whole batch, for Find and Scan
  std::vector<Candidate> candidates;  // all routes, fastest prediction first
  std::string route;                  // the route that executed the batch
  std::string index;                  // its ordered index, as in IndexStats
  std::string reason;                 // why this route was chosen
  absl::Duration predicted;
  absl::Duration measured;            // from the call to the results, including failed attempts
  std::vector<std::string> failures;  // of routes tried before: name and error
};

// Counters of one route since its index was opened. One in 16 batches with fewer than 64 queries is
// timed, and its time counts 16 times.
struct RouteStats {
  // Bucket b counts batches that took less than 2^b microseconds and belong to no lower bucket. The
  // last bucket also counts all slower batches.
  static constexpr size_t kBuckets = 24;

  std::string route;
  uint64_t batches = 0;
  uint64_t queries = 0;
  uint64_t bytes = 0;     // of keys and results
  uint64_t failures = 0;  // batches that another route had to execute
  absl::Duration busy;    // sum of the batch latencies
  std::array<uint64_t, kBuckets> response_times = {};
};

}  // namespace cairn
