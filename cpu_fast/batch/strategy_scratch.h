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

// Memory that a strategy (cpu_fast/batch/strategy.h) works with and keeps for the next call. One
// caller's at a time; indexes and kinds of keys may change between calls.
class StrategyScratch {
 public:
  enum class Role : uint8_t {
    kEntries,  // what is sorted
    kRecords,
    kKeys,    // queries in another order than the caller's,
    kSlots,   // and which of the batch they are
    kValues,  // answers in that order
    kEnds,
    kFound,
    kFill,
    kCount
  };

  // `size` elements for a role, uninitialised; those that the role had before are gone. Throws
  // std::bad_alloc.
  template <typename T>
  absl::Span<T> Take(Role role, size_t size) {
    static_assert(std::is_trivially_copyable_v<T>);
    AlignedBuffer<uint64_t>& array = arrays_[static_cast<size_t>(role)];
    const size_t words = (size * sizeof(T) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    if (array.size() < words) {
      array = {};  // so that both are not there at a time
      array = AlignedBuffer<uint64_t>(words);
    }
    return {reinterpret_cast<T*>(array.data()), size};
  }

  // Gives *batch, of points, room for `size` answers in place of its own.
  void TakeAnswers(size_t size, Batch* batch);

  template <typename Key>
  PartMap<Key>& part_map() {
    if constexpr (sizeof(Key) == 4) {
      return part_map32_;
    } else {
      return part_map64_;
    }
  }

  // Bytes of what grows with the batch.
  uint64_t memory_bytes() const;

 private:
  std::array<AlignedBuffer<uint64_t>, static_cast<size_t>(Role::kCount)> arrays_;
  PartMap<uint32_t> part_map32_;
  PartMap<uint64_t> part_map64_;
};

// Copies answer i of `from` to the place slots[i] of `to`, whose operation, of points, is the same.
void ScatterAnswers(const Batch& from, absl::Span<const uint32_t> slots, const Batch& to);

// The scratch of any number of calls at once: what one has finished with serves the next, so that
// a call which is no larger than those before allocates nothing. Thread-safe.
class StrategyScratchPool {
 public:
  // Scratch that is one caller's until the lease ends. The pool must outlive it.
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
    std::unique_ptr<StrategyScratch> scratch_;  // null where the lease has moved on
  };

  StrategyScratchPool() = default;
  StrategyScratchPool(const StrategyScratchPool&) = delete;
  StrategyScratchPool& operator=(const StrategyScratchPool&) = delete;

  // Throws std::bad_alloc.
  Lease Take();

  // Bytes of what no call holds.
  uint64_t memory_bytes() const;
  // Frees what no call holds.
  void FreeIdle();

 private:
  mutable Mutex mutex_;
  size_t leased_ ABSL_GUARDED_BY(mutex_) = 0;
  // The one that was used last is the last.
  std::vector<std::unique_ptr<StrategyScratch>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
