#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "index/aggregates/range_extremes.h"
#include "index/aggregates/range_float_sums.h"
#include "index/aggregates/range_sums.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"

namespace cairn {

// An object that is built once, on first use, and then read without a lock. Thread-safe.
template <typename T>
class MadeOnce {
 public:
  // make() returns an absl::StatusOr<std::unique_ptr<const T>>. After an error the next call tries
  // again.
  template <typename Make>
  absl::StatusOr<const T*> Get(Make make) {
    if (const T* made = get(); made != nullptr) return made;
    const MutexLock lock(&mutex_);
    if (const T* made = get(); made != nullptr) return made;
    ASSIGN_OR_RETURN(owned_, make());
    made_.store(owned_.get(), std::memory_order_release);
    return owned_.get();
  }
  // Returns the object, or null if it is not built.
  const T* get() const { return made_.load(std::memory_order_acquire); }

 private:
  Mutex mutex_;
  std::unique_ptr<const T> owned_ ABSL_GUARDED_BY(mutex_);
  std::atomic<const T*> made_{nullptr};
};

// The structures that answer aggregates over the entries of one run, by column. Each is built on
// first use. Thread-safe.
class RunAggregates {
 public:
  explicit RunAggregates(size_t columns)
      : size_(columns), columns_(std::make_unique<Column[]>(columns)) {}

  struct Column {
    MadeOnce<RangeSums> sums;
    MadeOnce<RangeFloatSums> float_sums;
    MadeOnce<RangeExtremes> extremes;
    MadeOnce<ColumnValues> values;  // for a segment of a delta

    template <typename Structure>
    MadeOnce<Structure>& of();

    uint64_t memory_bytes() const {
      uint64_t bytes = 0;
      if (sums.get() != nullptr) bytes += sums.get()->memory_bytes();
      if (float_sums.get() != nullptr) bytes += float_sums.get()->memory_bytes();
      if (extremes.get() != nullptr) bytes += extremes.get()->memory_bytes();
      if (values.get() != nullptr) bytes += values.get()->memory_bytes();
      return bytes;
    }
  };

  size_t columns() const { return size_; }
  Column& column(size_t i) const { return columns_[i]; }
  uint64_t memory_bytes() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < size_; ++i) bytes += columns_[i].memory_bytes();
    return bytes;
  }

 private:
  const size_t size_;
  const std::unique_ptr<Column[]> columns_;
};

template <>
inline MadeOnce<RangeSums>& RunAggregates::Column::of<RangeSums>() {
  return sums;
}
template <>
inline MadeOnce<RangeFloatSums>& RunAggregates::Column::of<RangeFloatSums>() {
  return float_sums;
}
template <>
inline MadeOnce<RangeExtremes>& RunAggregates::Column::of<RangeExtremes>() {
  return extremes;
}

}  // namespace cairn
