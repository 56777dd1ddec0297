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
#include "absl/types/span.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Predicates over several columns in the memory of one GPU: how many rows satisfy AND, OR and NOT
// of ranges and lists of keys, and which. Counts and rows stay on the device, and calls are
// stream-ordered, as those of device.h. docs/queries.md says how it is done.

namespace cairn {

// Keys from `first` to `last`, both of them included; none where `first` is greater.
struct DeviceKeyRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  friend bool operator==(const DeviceKeyRange& a, const DeviceKeyRange& b) {
    return a.first == b.first && a.last == b.last;
  }
};

// Which rows are asked for: a value that owns all it says, cheap to copy. Columns go by their
// number in the group, keys are numbers as the columns hold them (key_codec.h makes them of logical
// ones, in their order), whatever the column's width. What makes one throws std::bad_alloc as
// containers do.
//
//   const DevicePredicate closed = DevicePredicate::Range(2, 7, 7);
//   const DevicePredicate where =
//       DevicePredicate::In(0, {3, 5, 8}) && DevicePredicate::Range(1, 18, 64) && !closed;
//
// The logic is SQL's, of three values: comparing the key of a row that has none in the column is
// unknown, and so is its negation; rows for which the whole is true are found. So it is a Predicate
// (predicate.h) with names and logical keys resolved: `=`, `<` and BETWEEN are Range, IN is
// In, a prefix of a key of several parts is the Range of its first to its last key.
class DevicePredicate {
 public:
  enum class Kind : uint8_t {
    kKeys,    // the row's key in column() lies in one of ranges()
    kIsNull,  // the row has no key in column()
    kAnd,     // all of, any of, or not: children()
    kOr,
    kNot,
  };

  // The key is from `first` to `last`, both included.
  static DevicePredicate Range(size_t column, uint64_t first, uint64_t last);
  // The key is one of these, in any order; of none, true of no row.
  static DevicePredicate In(size_t column, absl::Span<const uint64_t> keys);
  // It is in one of these, which may overlap.
  static DevicePredicate InRanges(size_t column, std::vector<DeviceKeyRange> ranges);
  static DevicePredicate IsNull(size_t column);
  // Of any number of predicates; of none, InvalidArgument when it is asked.
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
  const std::vector<DeviceKeyRange>& ranges() const;     // kKeys, as they were given
  const std::vector<DevicePredicate>& children() const;  // kAnd, kOr, kNot
  size_t depth() const;                                  // 1 for a comparison

 private:
  struct Node;

  explicit DevicePredicate(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

// How a predicate's rows are found.
enum class DeviceWhereStrategy : uint8_t {
  kAuto,    // what is predicted to take the least time
  kGather,  // rows of one comparison's entries, each tested for the others; where all must hold
  kBitmap,  // comparisons' entries as bitmaps, a part of the rows at a time in shared memory
  kScan,    // a byte a row and comparison, in the order of rows; where that does not tell, four
};
// "auto", "gather", "bitmap" or "scan".
std::string_view DeviceWhereStrategyName(DeviceWhereStrategy strategy);

// What is done for a predicate, and why.
struct DeviceWherePlan {
  struct Comparison {
    size_t column = 0;
    size_t ranges = 0;  // of keys, after those of one column side by side have become one
    bool null = false;  // whether rows without a key are among what it asks for
    double rows = 0;    // expected, from a sample of the column's keys
  };
  struct Candidate {
    DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto;
    double microseconds = 0;  // predicted: to be right about which is faster, not how fast
  };

  DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto;
  double expected_rows = 0;
  std::vector<Comparison> comparisons;
  std::vector<Candidate> candidates;  // those that can answer, the fastest first

  // Some lines to read.
  std::string ToString() const;
};

// Columns over the same rows, 0 … rows() - 1, in the memory of one device. A row has at most one
// key in a column; without one it is NULL there. Immutable: every method is safe from any number of
// host threads and streams; scratch memory is the stream's own.
//
// A column takes 13 bytes a row of device memory where keys are of 32 bits, and 17 where they are
// of 64: sorted keys and their rows (of NULL rows 4 bytes less, or 8), the position of each row's
// key among them (4 bytes), and a code of one byte.
class DeviceIndexGroup {
 public:
  // A column's entries in device memory, in any order: numbers, keys[i] of row row_ids[i], or of
  // row i where there are no row ids.
  struct Column {
    DeviceKeys keys;
    const RowId* row_ids = nullptr;
  };

  static constexpr size_t kMaxColumns = 64;
  // Comparisons of a predicate, once those of one column side by side have become one.
  static constexpr size_t kMaxComparisons = 64;
  static constexpr size_t kMaxDepth = 200;

  // Over entries in the memory of the stream's device, which are left as they are. Waits for the
  // stream. InvalidArgument, naming the column, for a row id of `rows` or more, for a row with
  // several keys, and for more than kMaxEntries rows or kMaxColumns columns; Unimplemented for
  // keys of bytes; FailedPrecondition where the stream is being captured; ResourceExhausted where
  // memory does not suffice: building takes up to 24 bytes an entry of one column besides the
  // group; Unavailable where there is no device, or it is lost.
  static absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> Create(uint64_t rows,
                                                                  absl::Span<const Column> columns,
                                                                  DeviceStream stream);
  // Over runs in host memory, on device `device` (an ordinal). Likewise; DataLoss where a run is
  // not in order.
  static absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> Create(
      uint64_t rows, absl::Span<const SortedRun> columns, int device = 0);

  ~DeviceIndexGroup();
  DeviceIndexGroup(const DeviceIndexGroup&) = delete;
  DeviceIndexGroup& operator=(const DeviceIndexGroup&) = delete;

  uint64_t rows() const;
  size_t columns() const;
  // Rows with a key in the column.
  uint64_t entries(size_t column) const;
  int device() const;
  // Bytes of device memory, all told.
  uint64_t memory_bytes() const;

  // What Count or Find would do. On the host alone. InvalidArgument: a column that is not there, a
  // list of no predicates, more than kMaxComparisons or kMaxDepth, or a strategy that cannot
  // answer this.
  absl::StatusOr<DeviceWherePlan> Explain(
      const DevicePredicate& where, bool only_count = false,
      DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto) const;

  // Enqueues: *count, in device memory, becomes the number of rows for which `where` is true. The
  // stream is of the group's device, and may be being captured; the group must then outlive the
  // graph. The group may be destroyed while its work is enqueued.
  //
  // Scratch: 12 bytes a range of keys and 80 a comparison; for kBitmap 4 bytes an entry of its
  // comparisons, too. Errors as Explain's, and DeviceIndex's.
  absl::Status Count(const DevicePredicate& where, uint64_t* count, DeviceStream stream,
                     DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto) const;

  // Enqueues: the rows for which `where` is true, ascending, and in *total how many they are. Those
  // that would go to row_ids[capacity] or behind are left out. All memory is the device's;
  // `row_ids` may be null where the capacity is 0. Errors and scratch as Count's, with a bit a row
  // of scratch more. Find, and Count by kBitmap, return Unavailable where an earlier CUDA call of
  // the caller's has left an error behind in the thread, and name it.
  absl::Status Find(const DevicePredicate& where, RowId* row_ids, uint64_t capacity,
                    uint64_t* total, DeviceStream stream,
                    DeviceWhereStrategy strategy = DeviceWhereStrategy::kAuto) const;

 private:
  struct Impl;

  explicit DeviceIndexGroup(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
