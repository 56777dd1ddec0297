#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/c/arrow.h"
#include "cairn/key_codec.h"

// Columns of keys that come in by Arrow's C data interface, checked before they are read. What the
// interface does not tell is taken on trust: how large a buffer is. Nothing here releases an array.

namespace cairn {

// A column without children: numbers, text or bytes. A view that owns nothing; immutable and
// thread-safe.
class ArrowColumn {
 public:
  // Elements [first, first + count) of the array. InvalidArgument, without a name for the column,
  // for what is no such array, was released, or contradicts itself: every offset is looked at.
  static absl::StatusOr<ArrowColumn> Read(const ArrowSchema& schema, const ArrowArray& array,
                                          size_t first, size_t count);

  // The part of a key that has such values.
  DataType type() const { return type_; }
  // Arrow's notation of the type, for messages. Valid as long as the schema.
  const char* format() const { return format_; }
  size_t size() const { return size_; }

  // The first element that is null, or size().
  size_t FirstNull() const;
  // Each requires i < size().
  bool IsNull(size_t i) const {
    if (validity_ == nullptr) return false;
    const size_t bit = first_ + i;
    return (validity_[bit / 8] >> (bit % 8) & 1) == 0;
  }
  // The bitmap, and which of its bits is element 0's; null where nothing is null.
  const uint8_t* validity() const { return validity_; }
  size_t first_bit() const { return first_; }

  // Element i, as a codec takes it. Text points into the array.
  DataValue value(size_t i) const;

  // Of a column of numbers: element 0, aligned or not; null where there is none.
  const void* numbers() const;
  // Of a column of text or bytes: elements [first, first + views.size()), which are in the array.
  void View(size_t first, absl::Span<std::string_view> views) const;

 private:
  friend std::optional<DataType> DataTypeOf(const ArrowSchema& schema);

  // How the values lie in memory.
  enum class Layout : uint8_t {
    kNumbers,
    kOffsets32,
    kOffsets64,
    kViews,
    kFixed,  // bytes of one width
  };
  struct Format {
    DataType type;
    Layout layout;
    size_t width;  // of a number, or of bytes of one width
    int64_t buffers() const;
  };
  static bool Parse(std::string_view text, Format* format);

  absl::Status CheckBytes(const ArrowArray& array) const;
  absl::Status CheckViews(const ArrowArray& array) const;
  template <typename Offset>
  absl::Status CheckOffsets(const ArrowArray& array) const;
  template <typename Offset>
  void ViewOffsets(size_t first, absl::Span<std::string_view> views) const;
  std::string_view View(size_t i) const;
  template <typename T>
  T At(size_t i) const {  // element i of the buffer of values
    T value;
    std::memcpy(&value, values_ + (first_ + i) * sizeof(T), sizeof value);
    return value;
  }

  DataType type_ = DataType::kU8;
  Layout layout_ = Layout::kNumbers;
  const char* format_ = "";
  size_t size_ = 0;
  size_t first_ = 0;                    // element 0 in the buffers
  size_t width_ = 0;                    // as Format's
  const uint8_t* validity_ = nullptr;   // null where nothing is null
  const char* values_ = nullptr;        // numbers, bytes of one width, offsets or views
  const char* heap_ = nullptr;          // behind offsets
  const void* const* heaps_ = nullptr;  // behind views
};

// The part of a key that arrays of this schema have the values of; none for Arrow's other types.
std::optional<DataType> DataTypeOf(const ArrowSchema& schema);

// The column of child i of a struct array, or with i = 0 of another array. The children's elements
// may be null, the structs may not. InvalidArgument as ArrowColumn::Read, and for a pointer that is
// null or a structure that was released.
absl::StatusOr<ArrowColumn> ReadArrowColumn(const ArrowSchema* schema, const ArrowArray* array,
                                            size_t i);
// All of them; at least one. An error names the child: "part 1", the first one.
absl::StatusOr<std::vector<ArrowColumn>> ReadArrowColumns(const ArrowSchema* schema,
                                                          const ArrowArray* array);

// The values of one part of keys in one or several arrays, one behind the other, as a codec takes
// them (KeyCodec::AppendColumns). Owns what had to be made for it: views of text and bytes, never
// the bytes themselves; numbers and bitmaps of several arrays; numbers that are not aligned.
class ArrowValues {
 public:
  // No values.
  ArrowValues() = default;
  ArrowValues(ArrowValues&&) noexcept = default;
  ArrowValues& operator=(ArrowValues&&) noexcept;
  ~ArrowValues();

  // The values of columns of this type, text and bytes standing for each other. The arrays must
  // outlive what is returned. Large columns of text take several threads. ResourceExhausted.
  static absl::StatusOr<ArrowValues> Of(DataType type, absl::Span<const ArrowColumn> columns);

  const ColumnSpan& part() const { return part_; }

 private:
  void ReadText(absl::Span<const ArrowColumn> columns, size_t size);
  void ReadNumbers(DataType type, absl::Span<const ArrowColumn> columns, size_t size);
  void ReadValidity(absl::Span<const ArrowColumn> columns, size_t size);

  ColumnSpan part_;
  std::vector<std::string_view> views_;
  std::vector<uint64_t> numbers_;  // of any type: aligned for all
  std::vector<uint8_t> validity_;
};

}  // namespace cairn
