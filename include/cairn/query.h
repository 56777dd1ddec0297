#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

// Ways to put a batch to an index, after Kim et al., FAST (SIGMOD 2010), section 7: they trade the
// response time of a batch against throughput.
enum class Strategy : uint8_t {
  kUnbuffered,  // the batch as it is
  kBuffered,    // queries are gathered by parts of the key range, and searched part by part
  kSortBased,   // the batch is sorted first
};

enum class ResultOrder : uint8_t {
  kCaller,  // result i is of keys[i]
  kKey,     // results ascend by key, or by parts of the key range if those are all that is known
};

struct Explain;  // route.h

// Keys of this C++ type are of this kind.
template <typename Key>
struct PhysicalTypeOf {};
template <>
struct PhysicalTypeOf<uint32_t> {
  static constexpr PhysicalType value = PhysicalType::kU32;
};
template <>
struct PhysicalTypeOf<uint64_t> {
  static constexpr PhysicalType value = PhysicalType::kU64;
};
template <>
struct PhysicalTypeOf<std::string_view> {
  static constexpr PhysicalType value = PhysicalType::kBytes;
};

// A batch of physical keys: a typed view that owns nothing. The keys must outlive every call that
// is given the batch. Cheap to copy.
class KeyBatch {
 public:
  KeyBatch() = default;  // an empty batch, of any kind

  // The keys of a vector, span or array of uint32_t, uint64_t or std::string_view. NOLINTBEGIN
  template <typename Keys,
            PhysicalType kKind = PhysicalTypeOf<std::remove_cv_t<
                std::remove_pointer_t<decltype(std::data(std::declval<const Keys&>()))>>>::value>
  KeyBatch(const Keys& keys) : kind_(kKind), size_(std::size(keys)), keys_(std::data(keys)) {}
  // NOLINTEND
  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The keys; requires that kind() be theirs, or that the batch be empty.
  template <typename Key>
  absl::Span<const Key> as() const {
    return {static_cast<const Key*>(keys_), size_};
  }
  absl::Span<const uint32_t> u32() const { return as<uint32_t>(); }
  absl::Span<const uint64_t> u64() const { return as<uint64_t>(); }
  absl::Span<const std::string_view> bytes() const { return as<std::string_view>(); }

  // The `count` keys from `first` on; requires first + count <= size().
  KeyBatch Slice(size_t first, size_t count) const;

 private:
  PhysicalType kind_ = PhysicalType::kU32;
  size_t size_ = 0;
  const void* keys_ = nullptr;
};

// Physical keys that own their bytes; what a KeyCodec encodes into, and what a scan returns keys
// in. Reusable: Clear() keeps the capacity. Not thread-safe.
class EncodedKeys {
 public:
  explicit EncodedKeys(PhysicalType kind = PhysicalType::kU32) : kind_(kind) {}

  PhysicalType kind() const { return kind_; }
  size_t size() const;
  bool empty() const { return size() == 0; }

  // Removes all keys and sets the kind of those to come.
  void Clear(PhysicalType kind);

  // Removes the keys from `size` on; requires size <= size().
  void Truncate(size_t size);

  // Appends one key; each requires that kind() be the one it names.
  void AppendU32(uint32_t key) { u32_.push_back(key); }
  void AppendU64(uint64_t key) { u64_.push_back(key); }
  void AppendBytes(std::string_view key);
  // Appends `count` keys of 0, for the caller to set, and returns the first of them; each requires
  // that kind() be the one it names.
  uint32_t* ExtendU32(size_t count);
  uint64_t* ExtendU64(size_t count);

  // Key i; each requires that kind() be the one it names and i < size(). A view of bytes is valid
  // until the column changes.
  uint32_t u32(size_t i) const { return u32_[i]; }
  uint64_t u64(size_t i) const { return u64_[i]; }
  std::string_view bytes(size_t i) const {
    return std::string_view(heap_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

  // All keys; each requires that kind() be the one it names. Of bytes: one after the other, and the
  // size() + 1 offsets of where each begins and the last one ends. Valid until the column changes.
  const std::vector<uint32_t>& u32() const { return u32_; }
  const std::vector<uint64_t>& u64() const { return u64_; }
  std::string_view heap() const { return heap_; }
  const std::vector<uint64_t>& offsets() const { return ends_; }

  // All keys as a batch, valid until the column changes or is destroyed.
  KeyBatch Batch();

 private:
  PhysicalType kind_;
  std::vector<uint32_t> u32_;
  std::vector<uint64_t> u64_;
  std::string heap_;
  std::vector<uint64_t> ends_ = {0};     // ends_[i + 1] is the offset in heap_ behind key i
  std::vector<std::string_view> views_;  // built by Batch()
};

// What one end of a range does with its key.
enum class Bound : uint8_t {
  kInclusive,  // the key belongs to the range
  kExclusive,  // the range ends just before, or starts just behind, the key
  kOpen,       // no limit at this end; the key is ignored
  kPrefix,     // upper end only, keys of bytes only: the range ends behind the last key that starts
               // with the range's lower key; the upper key is ignored
};

// A batch of key ranges: a view that owns nothing. Range i goes from lower[i] to upper[i].
// A range whose ends have crossed is empty, not an error.
struct RangeBatch {
  KeyBatch lower;
  KeyBatch upper;                        // as many keys as `lower`, of the same kind
  absl::Span<const Bound> lower_bounds;  // one a range; empty: `lower_bound` for all
  absl::Span<const Bound> upper_bounds;  // one a range; empty: `upper_bound` for all
  Bound lower_bound = Bound::kInclusive;
  Bound upper_bound = Bound::kExclusive;
  // SecondaryIndex's Scan and Fetch: for range i, the cursor behind which to go on
  // (FindResult::cursors), or empty to start at the range's beginning. Empty span: all start there.
  absl::Span<const std::string> after;

  // [lower[i], upper[i])
  static RangeBatch HalfOpen(KeyBatch lower, KeyBatch upper);
  // [keys[i], keys[i]]: all entries of one key
  static RangeBatch Equal(KeyBatch keys);
  // every key that starts with prefixes[i], which must be bytes
  static RangeBatch Prefix(KeyBatch prefixes);
  // one range that holds everything
  static RangeBatch Everything(PhysicalType kind);

  size_t size() const { return lower.size(); }
  PhysicalType kind() const { return lower.kind(); }
  Bound lower_bound_of(size_t i) const {
    return lower_bounds.empty() ? lower_bound : lower_bounds[i];
  }
  Bound upper_bound_of(size_t i) const {
    return upper_bounds.empty() ? upper_bound : upper_bounds[i];
  }
  // The `count` ranges from `first` on; requires first + count <= size().
  RangeBatch Slice(size_t first, size_t count) const;
};

// The rows that each query of a batch found, in compressed sparse rows: query i's are
// row_ids[offsets[i]] … row_ids[offsets[i + 1] - 1]. Reuse one object between calls: a warm call
// allocates nothing. Plain data; a call that fails leaves it in an unspecified valid state.
struct FindResult {
  std::vector<uint64_t> offsets;  // [batch + 1], offsets[0] = 0
  // By (key, primary key) within a query, of which a base's row ids have the order; reversed by a
  // descending scan.
  std::vector<RowId> row_ids;
  // Of an index in shards (sharding.h): the shard of each row, shards[j] that of row_ids[j]. Empty
  // for any other index.
  std::vector<uint32_t> shards;

  // Scan with QueryOptions::with_keys: keys[j] is the key under which row_ids[j] was found.
  EncodedKeys keys;
  // With QueryOptions::columns: one a column, of which value j is that of row_ids[j].
  std::vector<ColumnValues> columns;
  // SecondaryIndex::Scan with a limit: where range i goes on, for RangeBatch::after; empty when the
  // range was exhausted. A cursor stays good for later versions of the index.
  std::vector<std::string> cursors;

  size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  absl::Span<const RowId> operator[](size_t i) const {
    return absl::MakeConstSpan(row_ids).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
  // Row j of all as one number, whatever the index.
  GlobalRowId global_row(size_t j) const {
    return MakeGlobalRowId(shards.empty() ? 0 : shards[j], row_ids[j]);
  }
};

enum class Order : uint8_t { kAscending, kDescending };

// How a batch is to be answered. The first group is heeded by an OrderedIndex; all of it by a
// SecondaryIndex.
struct QueryOptions {
  Order order = Order::kAscending;  // of a scan's entries, by (key, primary key)
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // of entries, for each range of a scan
  bool with_keys = false;                                 // a scan also returns each entry's key
  // Find and Scan of a SecondaryIndex also return these columns of each row, by name, of those that
  // the index includes (IndexSpec::include): as the rows are in the version that answers.
  // InvalidArgument, naming those that there are, for another.
  std::vector<std::string> columns = {};

  // The whole batch shall be answered within this time. It does not change the route (query.h),
  // which is the one predicted to be the fastest, whatever the limit: Explain says if that is
  // predicted to take longer. A call with a limit makes no new trials.
  absl::Duration latency_target = absl::InfiniteDuration();
  // The caller knows that the batch's keys (a range's lower keys) ascend. A false claim may slow
  // the batch; answers stay correct.
  bool sorted_input = false;
  // Find, FindFirst and Contains: with kKey answers come in the order of the batch's keys, which
  // saves the way back to the caller's; Batch::query_of says of which query each is.
  ResultOrder result_order = ResultOrder::kCaller;
  // The route to take, by name; empty: the router chooses. InvalidArgument, naming those that there
  // are, for any other.
  std::string_view route = {};
};

// What a batch asks of each key or range.
enum class Operation : uint8_t {
  kFindFirst,  // the key's first (lowest) row, or kNoRow
  kContains,   // whether any row has the key
  kFind,       // all rows of the key
  kCount,      // the number of entries in the range
  kScan,       // the rows of the range, and their keys if QueryOptions::with_keys
  // Of an OrderedIndex, whose entries have positions; a SecondaryIndex refuses them.
  kLowerBound,  // the number of entries whose key is less than the key
  kUpperBound,  // the number of entries whose key is at most the key
  kEqualRange,  // both
  kPositions,   // where the range's entries begin and end; that is the same where there are none
};
inline constexpr size_t kIndexOperations = 5;  // of a SecondaryIndex

// "find_first", "contains", "find", "count", "scan", "lower_bound", "upper_bound", "equal_range" or
// "positions".
std::string_view OperationName(Operation operation);

// Whether an operation's queries are ranges; else they are keys.
inline bool TakesRanges(Operation operation) {
  return operation == Operation::kCount || operation == Operation::kScan ||
         operation == Operation::kPositions;
}

// Queries of one operation, and where their answers go: what every kind of index is asked, and
// what it hands to the next. A view that owns nothing; keys and answers must outlive the call.
struct Batch {
  Operation operation = Operation::kFindFirst;
  KeyBatch keys = {};      // of all operations but those of ranges
  RangeBatch ranges = {};  // kCount, kScan, kPositions
  QueryOptions options = {};

  // Answers: those of the operation are as long as the batch, or not null; others are not looked
  // at.
  absl::Span<uint32_t> values = {};  // row ids (kFindFirst), positions, or where ranges begin
  // The shards of `values` (kFindFirst); an index in shards wants it, any other may be given it.
  absl::Span<uint32_t> shards = {};
  absl::Span<Position> ends = {};    // where ranges end (kEqualRange, kPositions)
  absl::Span<bool> found = {};       // kContains
  absl::Span<uint64_t> counts = {};  // kCount
  FindResult* matches = nullptr;     // kFind, kScan

  // Where not empty, as long as the batch: answer i is of query query_of[i]. For points; required
  // by ResultOrder::kKey.
  absl::Span<uint32_t> query_of = {};
  Explain* explain = nullptr;  // if not null, set to how the batch was routed

  static Batch FindFirst(KeyBatch keys, absl::Span<RowId> row_ids,
                         const QueryOptions& options = {}) {
    Batch batch{Operation::kFindFirst, keys, {}, options};
    batch.values = row_ids;
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
  // Whether answers go to *matches.
  bool gives_matches() const {
    return operation == Operation::kFind || operation == Operation::kScan;
  }
  size_t size() const { return takes_ranges() ? ranges.size() : keys.size(); }
  bool empty() const { return size() == 0; }
  // The `count` queries from `first` on with their answers; requires first + count <= size(). All
  // parts have *matches in common.
  Batch Slice(size_t first, size_t count) const;
};

// A route is one way to answer a batch: an ordered index, which is in memory of the host or of a
// GPU, and a strategy (query.h). An open SecondaryIndex has several, and sends each batch along
// the one that its cost models predict to be best. A route's name is its ordered index's device and
// structure, then the strategy unless that is unbuffered: "cpu:packed", "cpu:packed+sort_based",
// "gpu:packed".

// How a batch was routed, for people. Plain data; what Batch::explain points to is written over
// by each call.
struct Explain {
  struct Candidate {
    std::string route;
    absl::Duration predicted;  // infinite where the route cannot take the batch
    std::string note;          // why it was out of the question; empty if it was not
  };

  Operation operation = Operation::kFindFirst;
  size_t queries = 0;
  double expected_rows = 0;           // of the whole batch; Find and Scan
  std::vector<Candidate> candidates;  // all routes, the fastest prediction first
  std::string route;                  // that answered
  std::string index;                  // its ordered index, as IndexStats describes it
  std::string reason;                 // why it was taken
  absl::Duration predicted;
  absl::Duration measured;            // from the call to its answers, failed tries included
  std::vector<std::string> failures;  // of routes that were tried before: name and error
};

// Counters of one route since its index was opened. Of batches of less than 64 queries one in
// sixteen is timed, and its time counted sixteen times.
struct RouteStats {
  // Bucket b counts batches that took less than 2^b microseconds and fit no lower bucket; the last
  // one takes all longer ones, too.
  static constexpr size_t kBuckets = 24;

  std::string route;
  uint64_t batches = 0;
  uint64_t queries = 0;
  uint64_t bytes = 0;     // of keys and answers
  uint64_t failures = 0;  // batches that another route had to answer
  absl::Duration busy;    // response times, added up
  std::array<uint64_t, kBuckets> response_times = {};
};

}  // namespace cairn
