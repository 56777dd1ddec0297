#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Predicates over several columns in the memory of one GPU: AND, OR and NOT of ranges and lists of
// keys. They count or list the rows that match. Counts and rows stay on the device, and calls are
// stream-ordered, as in device.h. docs/queries.md describes the implementation.

namespace cairn {

// The keys from `first` to `last`, both inclusive; empty if first > last.
struct DeviceKeyRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  friend bool operator==(const DeviceKeyRange& a, const DeviceKeyRange& b) {
    return a.first == b.first && a.last == b.last;
  }
};

// A condition on rows. A DevicePredicate owns its contents and is cheap to copy. Columns are
// identified by their index in the group. Keys are physical keys of the column, whatever their
// width; KeyCodec (key_codec.h) encodes logical keys. Functions that create a predicate throw
// std::bad_alloc if memory runs out.
//
//   const DevicePredicate closed = DevicePredicate::Range(2, 7, 7);
//   const DevicePredicate where =
//       DevicePredicate::In(0, {3, 5, 8}) && DevicePredicate::Range(1, 18, 64) && !closed;
//
// The logic is SQL's three-valued logic. A comparison of a row without a key in the column is
// unknown, and so is its negation. A row matches if the whole predicate is true. A DevicePredicate
// is thus a Predicate (predicate.h) with resolved names and keys: `=`, `<` and BETWEEN are Range,
// IN is In, and a prefix of a key of several parts is the Range from its first to its last key.
class DevicePredicate {
 public:
  // The kind of a condition.
  enum class Kind : uint8_t {
    kKeys,    // the key of the row in column() is in one of ranges()
    kIsNull,  // the row has no key in column()
    kAnd,     // of children(): all, any, or not
    kOr,
    kNot,
  };

  // Matches keys from `first` to `last`, both inclusive.
  static DevicePredicate Range(size_t column, uint64_t first, uint64_t last);
  // Matches the given keys, in any order. Matches no row if `keys` is empty.
  static DevicePredicate In(size_t column, absl::Span<const uint64_t> keys);
  // Matches keys in one of the ranges, which may overlap.
  static DevicePredicate InRanges(size_t column, std::vector<DeviceKeyRange> ranges);
  // Matches rows without a key in the column.
  static DevicePredicate IsNull(size_t column);
  // The conjunction or disjunction of any number of predicates. If there is none, Count, Find and
  // Explain return InvalidArgument.
  static DevicePredicate All(std::vector<DevicePredicate> predicates);
  static DevicePredicate Any(std::vector<DevicePredicate> predicates);
  friend DevicePredicate operator&&(const DevicePredicate& a, const DevicePredicate& b) {
    return All({a, b});
  }
  friend DevicePredicate operator||(const DevicePredicate& a, const DevicePredicate& b) {
    return Any({a, b});
  }
  DevicePredicate operator!() const;

  Kind kind() const;
  size_t column() const;                                 // kKeys, kIsNull
  const std::vector<DeviceKeyRange>& ranges() const;     // kKeys, as given
  const std::vector<DevicePredicate>& children() const;  // kAnd, kOr, kNot
  size_t depth() const;                                  // 1 for a comparison

 private:
  struct Node;

  explicit DevicePredicate(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

// How the rows of a predicate are found.
enum class DeviceWhereStrategy : uint8_t {
  kAuto,    // the strategy with the lowest predicted time
  kGather,  // reads the rows of one comparison and tests each for the others; for conjunctions
  kBitmap,  // builds bitmaps from the entries of the comparisons, in shared memory, for one part of
            // the rows at a time
  kScan,  // reads one byte per row and comparison in row order, or four bytes if one byte does not
          // decide
};
// Returns "auto", "gather", "bitmap" or "scan".
std::string_view DeviceWhereStrategyName(DeviceWhereStrategy strategy);

// How a predicate is executed, and why.
struct DeviceWherePlan {
  // A comparison, or a set of adjacent comparisons of one column.
  struct Comparison {
    size_t column = 0;
    size_t ranges = 0;  // of keys, after adjacent comparisons of a column are combined
    bool null = false;  // whether it matches rows without a key
    double rows = 0;    // expected number, from a sample of the keys
  };
  // A strategy that supports the predicate.
  struct Candidate {
    DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto;
    // Predicted time. Accurate enough to compare strategies, not as an absolute time.
    absl::Duration predicted;
  };

  DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto;
  double expected_rows = 0;
  std::vector<Comparison> comparisons;
  std::vector<Candidate> candidates;  // strategies that support the predicate, fastest first

  // Returns several lines of text.
  std::string ToString() const;
};

// Columns over the same rows, 0 … rows() - 1, in the memory of one device. A row has at most one
// key per column, and is NULL in a column in which it has none. Immutable. Every method may be
// called from any number of host threads and streams; scratch memory belongs to the stream.
//
// A column takes 13 bytes of device memory per row with 32-bit keys and 17 bytes with 64-bit keys:
// sorted keys and their rows (4 or 8 bytes less for a NULL row), the position of each row's key (4
// bytes), and a code of one byte.
class DeviceIndexGroup {
 public:
  // The entries of a column in device memory, in any order: integers, keys[i] of row row_ids[i], or
  // of row i if `row_ids` is null.
  struct Column {
    DeviceKeys keys;
    const RowId* row_ids = nullptr;
  };

  // The maximum number of columns of a group.
  static constexpr size_t kMaxColumns = 64;
  // The maximum number of comparisons of a predicate, after adjacent comparisons of a column are
  // combined.
  static constexpr size_t kMaxComparisons = 64;
  // The maximum nesting of a predicate (DevicePredicate::depth).
  static constexpr size_t kMaxDepth = 200;

  // Creates a group from entries in the memory of the stream's device, which are left unchanged.
  // Waits for the stream. Building takes up to 24 bytes per entry of one column in addition to the
  // group. Errors: InvalidArgument, naming the column, for a row id of `rows` or more and for a row
  // with several keys; InvalidArgument for more than kMaxEntries rows or kMaxColumns columns;
  // Unimplemented for byte-string keys; FailedPrecondition if the stream is being captured;
  // ResourceExhausted if memory runs out; Unavailable if there is no device or it is lost.
  static absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> Create(uint64_t rows,
                                                                  absl::Span<const Column> columns,
                                                                  DeviceStream stream);
  // Creates a group from runs in host memory, on the device with ordinal `device`. Waits. Errors:
  // those of the overload above; DataLoss if a run is not in order.
  static absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> Create(
      uint64_t rows, absl::Span<const SortedRun> columns, int device = 0);

  virtual ~DeviceIndexGroup() = default;
  DeviceIndexGroup(const DeviceIndexGroup&) = delete;
  DeviceIndexGroup& operator=(const DeviceIndexGroup&) = delete;

  virtual uint64_t rows() const = 0;
  virtual size_t columns() const = 0;
  // Returns the number of rows with a key in the column.
  virtual uint64_t entries(size_t column) const = 0;
  virtual int device() const = 0;
  // Returns the total bytes of device memory.
  virtual uint64_t memory_bytes() const = 0;

  // Returns the plan of Count (if `only_count`) or Find. Runs only on the host. Errors:
  // InvalidArgument for a column that does not exist, an empty All or Any, more than
  // kMaxComparisons or kMaxDepth, and a strategy that does not support the predicate.
  virtual absl::StatusOr<DeviceWherePlan> Explain(
      const DevicePredicate& where, bool only_count = false,
      DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto) const = 0;

  // Enqueues work that sets *count, in device memory, to the number of rows for which `where` is
  // true. `stream` must be of the device of the group. It may be in capture mode; the group must
  // then outlive the graph. The group may be destroyed while its work is enqueued.
  //
  // Scratch memory: 12 bytes per range of keys and 80 per comparison; for kBitmap, also 4 bytes per
  // entry of its comparisons. Errors: those of Explain and of DeviceIndex.
  virtual absl::Status Count(const DevicePredicate& where, uint64_t* count, DeviceStream stream,
                             DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto) const = 0;

  // Enqueues work that writes the rows for which `where` is true to `row_ids`, in ascending order,
  // and their number to *total. Rows that belong at row_ids[capacity] or later are omitted. All
  // memory is the device's; `row_ids` may be null if `capacity` is 0. Scratch memory: that of Count
  // and one bit per row. Errors: those of Count. If an earlier CUDA call of the caller has left an
  // error in the thread, Find, and Count with kBitmap, return Unavailable and name it.
  virtual absl::Status Find(const DevicePredicate& where, RowId* row_ids, uint64_t capacity,
                            uint64_t* total, DeviceStream stream,
                            DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto) const = 0;

 protected:
  DeviceIndexGroup() = default;
};

}  // namespace cairn
