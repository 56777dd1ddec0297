#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "absl/types/span.h"
#include "index/machine/huge_pages.h"

namespace cairn {

// The size of a cache line; all columns of keys and row ids are aligned and padded to it.
inline constexpr size_t kCacheLineBytes = 64;

// A fixed-size array of trivial elements. It is aligned to a cache line, or to T if that is more,
// and padded to whole lines. An array of more than 2 MB requests huge pages (madvise). Contents are
// uninitialized, and the padding is zero. Movable; not thread-safe. Throws std::bad_alloc.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size);

  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  // The number of its bytes that are in huge pages (HugePageBytes).
  uint64_t huge_page_bytes() const { return HugePageBytes(data(), size_ * sizeof(T)); }
  absl::Span<T> span() { return {data(), size_}; }
  absl::Span<const T> span() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> memory_;
  size_t size_ = 0;
};

// Allocates memory for an AlignedBuffer: `bytes` rounded up to a multiple of `alignment`, at least
// one. The last cache line is zeroed. `alignment` is at least a cache line.
void* AllocateLines(size_t bytes, size_t alignment);
void FreeLines(void* p);

template <typename T>
AlignedBuffer<T>::AlignedBuffer(size_t size)
    : memory_(AllocateLines(size > SIZE_MAX / 2 / sizeof(T) ? SIZE_MAX / 2 : size * sizeof(T),
                            std::max(kCacheLineBytes, alignof(T)))),
      size_(size) {}

template <typename T>
void AlignedBuffer<T>::Free::operator()(void* p) const {
  FreeLines(p);
}

}  // namespace cairn
