#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "cpu_fast/batch/part_map.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/mutex.h"

namespace cairn {

// Temporary memory of a strategy (cpu_fast/batch/strategy.h), kept for the next call. Must be used
// by one caller at a time. The index and the type of keys may change between calls.
class StrategyScratch {
 public:
  enum class Role : uint8_t {
    kEntries,  // the entries to sort
    kRecords,
    kKeys,    // reordered queries
    kSlots,   // the batch position of each of these queries
    kValues,  // results in the same order
    kEnds,
    kFound,
    kFill,
    kCount
  };

  // Returns `size` uninitialized elements for a role and invalidates those that the role had
  // before. Throws std::bad_alloc.
  template <typename T>
  absl::Span<T> Take(Role role, size_t size) {
    static_assert(std::is_trivially_copyable_v<T>);
    AlignedBuffer<uint64_t>& array = arrays_[static_cast<size_t>(role)];
    const size_t words = (size * sizeof(T) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    if (array.size() < words) {
      array = {};  // frees the old array first, so that only one exists at a time
      array = AlignedBuffer<uint64_t>(words);
    }
    return {reinterpret_cast<T*>(array.data()), size};
  }

  // Points the result spans of *batch, a batch of points, to memory for `size` results.
  void TakeAnswers(size_t size, Batch* batch);

  template <typename Key>
  PartMap<Key>& part_map() {
    if constexpr (sizeof(Key) == 4) {
      return part_map32_;
    } else {
      return part_map64_;
    }
  }

  // Bytes of the arrays that grow with the batch.
  uint64_t memory_bytes() const;

 private:
  std::array<AlignedBuffer<uint64_t>, static_cast<size_t>(Role::kCount)> arrays_;
  PartMap<uint32_t> part_map32_;
  PartMap<uint64_t> part_map64_;
};

// Copies result i of `from` to position slots[i] of `to`. Both must have the same point operation.
void ScatterAnswers(const Batch& from, absl::Span<const uint32_t> slots, const Batch& to);

// The scratch memory of any number of concurrent calls. A call reuses what earlier calls have
// released, so a call that is no larger than earlier ones does not allocate. Thread-safe.
class StrategyScratchPool {
 public:
  // Scratch memory owned by one caller until the lease ends. The pool must outlive the lease.
  class Lease {
   public:
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    StrategyScratch* get() const { return scratch_.get(); }
    StrategyScratch* operator->() const { return scratch_.get(); }

   private:
    friend class StrategyScratchPool;
    Lease(StrategyScratchPool* pool, std::unique_ptr<StrategyScratch> scratch)
        : pool_(pool), scratch_(std::move(scratch)) {}

    StrategyScratchPool* pool_;
    std::unique_ptr<StrategyScratch> scratch_;  // null if moved from
  };

  StrategyScratchPool() = default;
  StrategyScratchPool(const StrategyScratchPool&) = delete;
  StrategyScratchPool& operator=(const StrategyScratchPool&) = delete;

  // Throws std::bad_alloc.
  Lease Take();

  // Bytes of the scratch memory that no call holds.
  uint64_t memory_bytes() const;
  // Frees the scratch memory that no call holds.
  void FreeIdle();

 private:
  mutable Mutex mutex_;
  size_t leased_ ABSL_GUARDED_BY(mutex_) = 0;
  // The most recently used one is last.
  std::vector<std::unique_ptr<StrategyScratch>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
