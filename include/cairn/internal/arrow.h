#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/c/arrow.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

// Reads columns of keys from Arrow's C data interface. Lengths, offsets and types are checked
// before the data is read. Buffer sizes are not part of the interface and cannot be checked: the
// caller must pass buffers of the declared length. No function releases an array.

namespace cairn {

// Returns whether values of a type are byte strings.
constexpr bool IsText(DataType type) {
  return type == DataType::kText || type == DataType::kBytes;
}

// A column without children: numbers, text or bytes, or indices into a dictionary of such values,
// which it then reads as the values. A view that owns no values. Immutable and thread-safe.
class ArrowColumn {
 public:
  // Returns elements [first, first + count) of an array, after checking every offset and index.
  // Errors: InvalidArgument, without the name of the column, if the array has another type, was
  // released, or is inconsistent.
  static absl::StatusOr<ArrowColumn> Read(const ArrowSchema& schema, const ArrowArray& array,
                                          size_t first, size_t count);

  // The type of a key part with such values.
  DataType type() const { return dictionary_ == nullptr ? type_ : dictionary_->type_; }
  // Returns Arrow's name of the type, for messages. Requires that the schema still exists.
  std::string type_name() const;
  size_t size() const { return size_; }

  // Returns the index of the first null element, or size().
  size_t FirstNull() const;
  // Returns whether element i is null. Requires i < size().
  bool IsNull(size_t i) const {
    return IsMarkedNull(i) || (dictionary_ != nullptr && dictionary_->IsNull(Index(i)));
  }
  bool is_dictionary() const { return dictionary_ != nullptr; }
  // The validity bitmap and the bit of element 0 in it. Null if no element is null, except for
  // indices of nulls in a dictionary.
  const uint8_t* validity() const { return validity_; }
  size_t first_bit() const { return first_; }

  // Returns element i. Requires i < size(). Text points into the array.
  DataValue value(size_t i) const;

  // Returns element 0 of a column of numbers, possibly unaligned; null if the column is empty.
  // Requires that it is no dictionary.
  const void* numbers() const;
  // Copies the size() numbers of a column of numbers.
  void CopyNumbers(void* to) const;
  // Sets views to elements [first, first + views.size()) of a column of text or bytes. The views
  // point into the array.
  void View(size_t first, absl::Span<std::string_view> views) const;

 private:
  friend std::optional<DataType> DataTypeOf(const ArrowSchema& schema);

  // The memory layout of the values.
  enum class Layout : uint8_t {
    kNumbers,
    kOffsets32,
    kOffsets64,
    kViews,
    kFixed,  // bytes of fixed width
  };
  struct Format {
    DataType type;
    Layout layout;
    size_t width;  // of a number, or of fixed-width bytes
    int64_t buffers() const;
  };
  static bool Parse(std::string_view text, Format* format);
  // Returns whether the type is one that columns can have, and sets the format of its elements,
  // which are indices if it is a dictionary.
  static bool Parse(const ArrowSchema& schema, Format* format);

  bool IsMarkedNull(size_t i) const {
    if (validity_ == nullptr) return false;
    const size_t bit = first_ + i;
    return (validity_[bit / 8] >> (bit % 8) & 1) == 0;
  }
  absl::Status CheckIndices() const;
  absl::Status CheckBytes(const ArrowArray& array) const;
  absl::Status CheckViews(const ArrowArray& array) const;
  template <typename Offset>
  absl::Status CheckOffsets(const ArrowArray& array) const;
  template <typename Offset>
  void ViewOffsets(size_t first, absl::Span<std::string_view> views) const;
  std::string_view View(size_t i) const;
  // Returns index i into the dictionary, or a huge number for a negative one.
  uint64_t Index(size_t i) const;
  template <typename T>
  T At(size_t i) const {  // element i of the value buffer
    T value;
    std::memcpy(&value, values_ + (first_ + i) * sizeof(T), sizeof value);
    return value;
  }

  DataType type_ = DataType::kU8;  // of indices, if it is a dictionary
  Layout layout_ = Layout::kNumbers;
  const ArrowSchema* schema_ = nullptr;
  size_t size_ = 0;
  size_t first_ = 0;                    // index of element 0 in the buffers
  size_t width_ = 0;                    // see Format
  const uint8_t* validity_ = nullptr;   // null if no element is null
  const char* values_ = nullptr;        // numbers, fixed-width bytes, offsets or views
  const char* heap_ = nullptr;          // data buffer of offsets
  const void* const* heaps_ = nullptr;  // data buffers of views
  std::shared_ptr<const ArrowColumn> dictionary_;
};

// Returns the type of a key part with values of this Arrow type; none for other types.
std::optional<DataType> DataTypeOf(const ArrowSchema& schema);
// Returns Arrow's notation of a type: "L" for u64; large_string ("U") and large_binary for text and
// bytes.
std::string_view ArrowFormat(DataType type);
// Returns Arrow's name of a type for messages: "uint64", "a dictionary of string".
std::string ArrowTypeName(std::string_view format);
std::string ArrowTypeName(const ArrowSchema& schema);

// Returns child i of a struct array, or, with i = 0, any other array as a column. Elements of the
// children may be null, but the structs must not be. Errors: InvalidArgument if a pointer is null
// or a structure was released, and as for ArrowColumn::Read.
absl::StatusOr<ArrowColumn> ReadArrowColumn(const ArrowSchema* schema, const ArrowArray* array,
                                            size_t i);
// Returns all columns, at least one. An error names the child: "part 1" is the first one.
absl::StatusOr<std::vector<ArrowColumn>> ReadArrowColumns(const ArrowSchema* schema,
                                                          const ArrowArray* array);

// The values of one key part from one or more concatenated arrays, in the form that
// KeyCodec::AppendColumns takes. Owns only what had to be created: views of text and bytes, but
// never the bytes; numbers and bitmaps concatenated from several arrays; aligned copies of
// unaligned numbers and of values of a dictionary.
class ArrowValues {
 public:
  ArrowValues() = default;
  ArrowValues(ArrowValues&&) noexcept = default;
  ArrowValues& operator=(ArrowValues&&) noexcept;
  ~ArrowValues();

  // Returns the values of columns of type `type`; text and bytes are interchangeable. The arrays
  // must outlive the result. Uses several threads for large columns of text. Errors:
  // ResourceExhausted.
  static absl::StatusOr<ArrowValues> Of(DataType type, absl::Span<const ArrowColumn> columns);

  const ColumnSpan& part() const { return part_; }

 private:
  void ReadText(absl::Span<const ArrowColumn> columns, size_t size);
  void ReadNumbers(DataType type, absl::Span<const ArrowColumn> columns, size_t size);
  void ReadValidity(absl::Span<const ArrowColumn> columns, size_t size);

  ColumnSpan part_;
  std::vector<std::string_view> views_;
  std::vector<uint64_t> numbers_;  // of any type, aligned for every type
  std::vector<uint8_t> validity_;
};

// Returns whether the physical keys of a codec are the values of its only part.
bool KeysAreValues(const KeyCodec& codec);

// Returns the physical keys of columns, one per part: the values themselves if KeysAreValues and
// none is null, otherwise keys encoded into `encoded`, which must be empty and of the codec's kind.
// Errors: those of KeyCodec::AppendColumns.
absl::StatusOr<KeyBatch> KeysOf(const KeyCodec& codec, absl::Span<const ColumnSpan> columns,
                                EncodedKeys* encoded);

}  // namespace cairn
