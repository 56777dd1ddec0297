#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/c/base.h"

// Arrays that come in by Arrow's C data interface, checked before they are read. What the interface
// does not tell is taken on trust: how large a buffer is.

namespace cairn {

// How the values of a column lie in memory.
enum class ArrowType : uint8_t {
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF32,
  kF64,
  kBytes,       // 32-bit offsets
  kLargeBytes,  // 64-bit offsets
  kBytesView,
  kFixedBytes,
};

// A column without children: a view that owns nothing.
class ArrowColumn {
 public:
  // Elements [first, first + count) of the array. InvalidArgument, without a name for the column,
  // for what is no such array, was released, or contradicts itself.
  static absl::StatusOr<ArrowColumn> Read(const ArrowSchema& schema, const ArrowArray& array,
                                          size_t first, size_t count);

  ArrowType type() const { return type_; }
  // Arrow's notation of the type, for messages. Valid as long as the schema.
  const char* format() const { return format_; }
  size_t size() const { return size_; }
  // The first element that is null, or size().
  size_t FirstNull() const;

  // Elements; each requires i < size().
  bool IsNull(size_t i) const {
    if (validity_ == nullptr) return false;
    const size_t bit = first_ + i;
    return (validity_[bit / 8] >> (bit % 8) & 1) == 0;
  }
  // The bitmap, and which of its bits is element 0's; null where nothing is null.
  const uint8_t* validity() const { return validity_; }
  size_t first_bit() const { return first_; }

  // Of a column of numbers of this type.
  template <typename T>
  T number(size_t i) const {
    T value;
    std::memcpy(&value, values_ + (first_ + i) * sizeof(T), sizeof value);
    return value;
  }
  // Of a column of byte strings.
  std::string_view bytes(size_t i) const;

  // The numbers where they are, or null where they are not aligned. Of a column of this type.
  template <typename T>
  const T* aligned() const {
    const char* const at = values_ + first_ * sizeof(T);
    return reinterpret_cast<uintptr_t>(at) % alignof(T) == 0 ? reinterpret_cast<const T*>(at)
                                                             : nullptr;
  }

 private:
  absl::Status CheckBytes(const ArrowArray& array) const;
  absl::Status CheckViews(const ArrowArray& array) const;
  template <typename Offset>
  absl::Status CheckOffsets() const;
  template <typename Offset>
  Offset offset(size_t i) const {
    Offset value;
    std::memcpy(&value, values_ + (first_ + i) * sizeof(Offset), sizeof value);
    return value;
  }

  ArrowType type_ = ArrowType::kU8;
  const char* format_ = "";
  size_t size_ = 0;
  size_t first_ = 0;                    // element 0 in the buffers
  size_t width_ = 0;                    // of a value of kFixedBytes
  const uint8_t* validity_ = nullptr;   // null where nothing is null
  const char* values_ = nullptr;        // numbers, offsets or views
  const char* heap_ = nullptr;          // of kBytes and kLargeBytes
  const void* const* heaps_ = nullptr;  // of kBytesView
};

// InvalidArgument, saying which, for a pointer that is null or a structure that was released.
absl::Status CheckArrow(const ArrowSchema* schema, const ArrowArray* array);

// The columns of a struct array's children, or the array itself as the one column.
absl::StatusOr<std::vector<ArrowColumn>> ReadColumns(const ArrowSchema* schema,
                                                     const ArrowArray* array);

}  // namespace cairn
