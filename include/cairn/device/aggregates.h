#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Aggregates of ranges in the memory of one GPU, at a cost that does not depend on the lengths of
// the ranges. Calls are stream-ordered, as in cairn/device.h.

namespace cairn {

// A column of numbers in device memory: a typed view that owns nothing. It has no nulls; omit
// entries without a value when building the aggregates.
class DeviceColumn {
 public:
  DeviceColumn() = default;  // no values
  DeviceColumn(const uint32_t* values, size_t size) : DeviceColumn(DataType::kU32, values, size) {}
  DeviceColumn(const uint64_t* values, size_t size) : DeviceColumn(DataType::kU64, values, size) {}
  DeviceColumn(const int32_t* values, size_t size) : DeviceColumn(DataType::kI32, values, size) {}
  DeviceColumn(const int64_t* values, size_t size) : DeviceColumn(DataType::kI64, values, size) {}
  DeviceColumn(const float* values, size_t size) : DeviceColumn(DataType::kF32, values, size) {}
  DeviceColumn(const double* values, size_t size) : DeviceColumn(DataType::kF64, values, size) {}

  DataType type() const { return type_; }
  size_t size() const { return size_; }
  const void* data() const { return values_; }

 private:
  DeviceColumn(DataType type, const void* values, size_t size)
      : type_(type), size_(size), values_(values) {}

  DataType type_ = DataType::kU32;
  size_t size_ = 0;
  const void* values_ = nullptr;
};

// An aggregate function of the entries of a range, and the index of its column among the columns
// that the aggregates are built from. kCount and kCountDistinct have no column. Aggregate
// (aggregate.h) defines the functions and the types of their results.
struct DeviceAggregate {
  AggregateFunction function = AggregateFunction::kCount;
  size_t column = 0;

  // Create an aggregate of entries, or of the column with this index.
  static DeviceAggregate Count() { return {}; }
  static DeviceAggregate CountDistinct() { return {AggregateFunction::kCountDistinct}; }
  static DeviceAggregate Sum(size_t column) { return {AggregateFunction::kSum, column}; }
  static DeviceAggregate Avg(size_t column) { return {AggregateFunction::kAvg, column}; }
  static DeviceAggregate Min(size_t column) { return {AggregateFunction::kMin, column}; }
  static DeviceAggregate Max(size_t column) { return {AggregateFunction::kMax, column}; }
};

// The kind of result for a range.
enum class DeviceResult : uint8_t {
  kValue,
  kNull,        // the range is empty
  kOutOfRange,  // the exact sum of integers does not fit in 64 bits
};

// Pointers to the results in device memory, one element per range. Null: not needed.
struct DeviceAggregateResults {
  uint64_t* counts = nullptr;  // numbers of entries, for any function
  // Values of the type of the function; 0 if `results` is not kValue. For kCount: the counts.
  void* values = nullptr;
  DeviceResult* results = nullptr;
};

// Aggregates of ranges over one set of entries. Immutable and thread-safe. Streams, lifetime and
// errors: see DeviceIndex.
//
// A count, a sum of integers, a minimum or a maximum of a range costs two reads of 64 bytes. The
// directory that finds the leaves is mostly in the second-level cache. A leaf stores its keys,
// their position and their values. It also stores the sum of all earlier values, or the minima and
// maxima before and after it in its group of 256 leaves. A table of groups stores the minima and
// maxima of power-of-two numbers of groups. If keys repeat, counts and sums are read from one
// record per key, with one more read for each end.
//
// Integers are added exactly: the result is kOutOfRange only if the sum of the range itself does
// not fit. Floating-point numbers are added as double and never subtracted, so a NaN or infinity
// outside a range does not affect the sum of the range.
class DeviceAggregates {
 public:
  virtual ~DeviceAggregates() = default;
  DeviceAggregates(const DeviceAggregates&) = delete;
  DeviceAggregates& operator=(const DeviceAggregates&) = delete;

  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }  // number of entries
  int device() const { return device_; }
  // Returns the total bytes of device memory.
  virtual uint64_t memory_bytes() const = 0;

  // Computes one aggregate of each range. A range whose lower end is above its upper end is empty.
  // Uses no scratch memory and may be captured. Errors: those of DeviceIndex; InvalidArgument for
  // keys of another type, Bound::kPrefix, and an aggregate that was not built.
  absl::Status Execute(const DeviceRanges& ranges, const DeviceAggregate& aggregate,
                       const DeviceAggregateResults& results, DeviceStream stream) const;

 protected:
  DeviceAggregates(PhysicalType kind, size_t size, int device)
      : kind_(kind), size_(size), device_(device) {}

 private:
  // Requires ranges of the key type, not empty; the device is current.
  virtual absl::Status AnswerRanges(const DeviceRanges& ranges, const DeviceAggregate& aggregate,
                                    const DeviceAggregateResults& results,
                                    DeviceStream stream) const = 0;

  PhysicalType kind_;
  size_t size_;
  int device_;
};

// Builds `aggregates`, and counts, over entries in the memory of the stream's device. Entry i is
// key keys[i], an integer, in any order; its value in a column is at index row_ids[i], or at index
// i if `row_ids` is null. Does not change the inputs; the caller may free them afterwards. If sums
// are built, averages are available, too. Waits for the stream.
//
// Device memory, measured with 2^28 distinct keys spread over all values of their type, in bytes
// per entry for each column and each of sum, minimum and maximum (in parentheses: with 64-bit
// keys):
// - 9 to 10 (20 to 22) for a column whose values span less than 2^32;
// - 23 (41) for other columns, and for sums of floating-point numbers;
// - 2.5 (11) if only counts are built.
//
// Errors: InvalidArgument for a column that does not exist and for a row id without a value;
// Unimplemented for byte-string keys; ResourceExhausted; FailedPrecondition if the stream is being
// captured; Unavailable and Internal as for DeviceIndex.
absl::StatusOr<std::unique_ptr<DeviceAggregates>> MakeDeviceAggregates(
    DeviceKeys keys, const RowId* row_ids, absl::Span<const DeviceColumn> columns,
    absl::Span<const DeviceAggregate> aggregates, DeviceStream stream);

// Builds aggregates over the entries of a run in host memory. The columns are in the memory of
// `device` (an ordinal), and the work that writes them must be complete. Waits. Errors: those of
// the overload above; DataLoss if the entries are not in order.
absl::StatusOr<std::unique_ptr<DeviceAggregates>> MakeDeviceAggregates(
    const SortedRun& run, absl::Span<const DeviceColumn> columns,
    absl::Span<const DeviceAggregate> aggregates, int device = 0);

}  // namespace cairn
