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

// Aggregates of ranges in the memory of one GPU, at a cost that does not depend on how long the
// ranges are. Calls are stream-ordered, as those of cairn/device.h.

namespace cairn {

// A column of numbers in device memory: a typed view that owns nothing. There are no nulls: entries
// without a value are left out of what the aggregates are built from.
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

// A function of the entries of a range, and a column's number among those that aggregates are built
// from; kCount and kCountDistinct have none. Results have the types that Aggregate
// (aggregate.h) lists, and mean the same.
struct DeviceAggregate {
  AggregateFunction function = AggregateFunction::kCount;
  size_t column = 0;

  static DeviceAggregate Count() { return {}; }
  static DeviceAggregate CountDistinct() { return {AggregateFunction::kCountDistinct}; }
  static DeviceAggregate Sum(size_t column) { return {AggregateFunction::kSum, column}; }
  static DeviceAggregate Avg(size_t column) { return {AggregateFunction::kAvg, column}; }
  static DeviceAggregate Min(size_t column) { return {AggregateFunction::kMin, column}; }
  static DeviceAggregate Max(size_t column) { return {AggregateFunction::kMax, column}; }
};

// What a range's value is.
enum class DeviceResult : uint8_t {
  kValue,
  kNull,        // the range has no entries
  kOutOfRange,  // an exact sum of integers that does not fit its 64 bits
};

// Where answers go, in device memory: one of each a range. Null: not wanted.
struct DeviceAggregateResults {
  uint64_t* counts = nullptr;  // entries, whatever the function
  // Of the function's type; 0 where `results` says that there is none. kCount: the counts.
  void* values = nullptr;
  DeviceResult* results = nullptr;
};

// Aggregates of the ranges of one set of entries. Immutable; thread-safe, streams and lifetime as a
// DeviceIndex's, and so are errors.
//
// A range costs two reads of 64 bytes for a count, a sum of integers, or the least or greatest
// value, besides a directory that mostly stays in the second-level cache: beside the keys of a leaf
// stand their position, the sum of all before it, or the extremes of those before and behind it in
// its group of 256 leaves, and its values; a table over groups has the extremes of powers of two of
// them. Where keys repeat, counts and sums are read from a record a key, one read more for either
// end.
//
// Integers are added exactly, and whether a sum fits is said of the range's own. Floats are added
// in double, never subtracted: those before, behind, and in tables over groups. So a NaN or an
// infinity outside of a range does not matter.
class DeviceAggregates {
 public:
  virtual ~DeviceAggregates() = default;
  DeviceAggregates(const DeviceAggregates&) = delete;
  DeviceAggregates& operator=(const DeviceAggregates&) = delete;

  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }  // entries
  int device() const { return device_; }
  // Bytes of device memory, all told.
  virtual uint64_t memory_bytes() const = 0;

  // Answers one aggregate of each range. A range whose ends have crossed is empty. InvalidArgument
  // for keys of another kind, for a prefix, and for an aggregate that this was not built for. No
  // scratch memory. May be captured.
  absl::Status Execute(const DeviceRanges& ranges, const DeviceAggregate& aggregate,
                       const DeviceAggregateResults& results, DeviceStream stream) const;

 protected:
  DeviceAggregates(PhysicalType kind, size_t size, int device)
      : kind_(kind), size_(size), device_(device) {}

 private:
  // Of ranges of the kind, not empty, on the device.
  virtual absl::Status AnswerRanges(const DeviceRanges& ranges, const DeviceAggregate& aggregate,
                                    const DeviceAggregateResults& results,
                                    DeviceStream stream) const = 0;

  PhysicalType kind_;
  size_t size_;
  int device_;
};

// Builds what answers `aggregates`, and counts besides, over entries in the memory of the stream's
// device: entry i has keys[i], a number, in any order, and of each column the value at row_ids[i],
// or at i where `row_ids` is null. All is left as it is, and may be freed afterwards. A sum serves
// as a mean too. Waits for the stream.
//
// Takes, for 2^28 distinct keys spread over their type, in bytes an entry for each column and each
// of sum, least and greatest: 9 to 10 for a column whose values span less than 2^32 (20 to 22 by
// 64-bit keys), else, and for sums of floats, 23 (41). 2.5 (11) where there are counts alone.
//
// InvalidArgument for a column that is not there, and for a row id that is none of its values';
// Unimplemented for keys of bytes; ResourceExhausted; FailedPrecondition where the stream is being
// captured; Unavailable and Internal as a DeviceIndex.
absl::StatusOr<std::unique_ptr<DeviceAggregates>> MakeDeviceAggregates(
    DeviceKeys keys, const RowId* row_ids, absl::Span<const DeviceColumn> columns,
    absl::Span<const DeviceAggregate> aggregates, DeviceStream stream);

// The same over the entries of a run in host memory; columns are in the memory of `device`, whose
// work on them must be done. DataLoss where the entries are not in order.
absl::StatusOr<std::unique_ptr<DeviceAggregates>> MakeDeviceAggregates(
    const SortedRun& run, absl::Span<const DeviceColumn> columns,
    absl::Span<const DeviceAggregate> aggregates, int device = 0);

}  // namespace cairn
