#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace cairn {

// A column of byte strings: one data buffer and size() + 1 ascending offsets into it, of 4 bytes
// each if the size of the buffer allows it, otherwise 8 bytes. A view that owns nothing.
class BytesColumn {
 public:
  BytesColumn() = default;
  // Requires offsets[0] = 0, ascending offsets, and offsets.back() <= the size of the buffer.
  BytesColumn(const char* heap, absl::Span<const uint32_t> offsets)
      : heap_(heap), offsets32_(offsets.data()), size_(offsets.size() - 1) {}
  BytesColumn(const char* heap, absl::Span<const uint64_t> offsets)
      : heap_(heap), offsets64_(offsets.data()), size_(offsets.size() - 1) {}

  size_t size() const { return size_; }
  std::string_view operator[](size_t i) const {
    return {heap_ + offset(i), static_cast<size_t>(offset(i + 1) - offset(i))};
  }

  // Returns the offset of string i in heap(); offset(size()) is the end of the last string.
  uint64_t offset(size_t i) const { return offsets32_ != nullptr ? offsets32_[i] : offsets64_[i]; }
  const char* heap() const { return heap_; }
  // The offsets. The unused one of the two is null.
  const uint32_t* offsets32() const { return offsets32_; }
  const uint64_t* offsets64() const { return offsets64_; }

 private:
  const char* heap_ = nullptr;
  const uint32_t* offsets32_ = nullptr;
  const uint64_t* offsets64_ = nullptr;
  size_t size_ = 0;
};

}  // namespace cairn
