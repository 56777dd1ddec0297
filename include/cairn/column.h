#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace cairn {

// A list of byte strings, stored contiguously in one data buffer. Reusable: Clear() keeps the
// capacity. Not thread-safe. Methods that grow the list throw std::bad_alloc.
class StringList {
 public:
  // The number of strings.
  size_t size() const { return ends_.size() - 1; }
  bool empty() const { return size() == 0; }
  // Returns string i. Requires i < size(). Valid until the list changes.
  std::string_view operator[](size_t i) const {
    return std::string_view(heap_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

  // The data buffer and the size() + 1 offsets of Arrow's large_binary layout: string i is bytes
  // [offsets()[i], offsets()[i + 1]) of heap(). Valid until the list changes.
  std::string_view heap() const { return heap_; }
  const std::vector<uint64_t>& offsets() const { return ends_; }

  // Removes all strings.
  void Clear() { heap_.clear(), ends_.resize(1); }
  // Removes the strings from index `size` on. Requires size <= size().
  void Truncate(size_t size) { ends_.resize(size + 1), heap_.resize(ends_[size]); }
  // Reserves capacity for `strings` more strings with `bytes` bytes in total.
  void Reserve(size_t strings, size_t bytes) {
    heap_.reserve(heap_.size() + bytes), ends_.reserve(ends_.size() + strings);
  }
  // Appends one string.
  void Append(std::string_view string) { Append(string, std::string_view()); }
  // Appends the concatenation of two strings as one string.
  void Append(std::string_view begin, std::string_view rest) {
    heap_.append(begin).append(rest);
    ends_.push_back(heap_.size());
  }

  // Iterates over the strings in order.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;
    Iterator(const StringList* strings, size_t i) : strings_(strings), i_(i) {}
    std::string_view operator*() const { return (*strings_)[i_]; }
    Iterator& operator++() { return ++i_, *this; }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }
    bool operator!=(const Iterator& other) const { return i_ != other.i_; }

   private:
    const StringList* strings_;
    size_t i_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  std::string heap_;
  std::vector<uint64_t> ends_ = {0};  // string i ends at heap_[ends_[i + 1]]
};

// Types and values of key parts and included columns.

// The logical type of a key part or an included column.
enum class DataType : uint8_t {
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
  kText,
  kBytes,
};

// Returns "u8" … "f64", "text" or "bytes".
std::string_view DataTypeName(DataType type);

// One logical value; std::monostate is null. A string_view does not own its bytes.
using DataValue = std::variant<std::monostate, uint64_t, int64_t, double, std::string_view>;

// The values of one key part for many keys: a view that owns nothing. It can refer to Arrow, NumPy
// or C++ arrays.
struct ColumnSpan {
  std::variant<absl::Span<const uint8_t>, absl::Span<const uint16_t>, absl::Span<const uint32_t>,
               absl::Span<const uint64_t>, absl::Span<const int8_t>, absl::Span<const int16_t>,
               absl::Span<const int32_t>, absl::Span<const int64_t>, absl::Span<const float>,
               absl::Span<const double>, absl::Span<const std::string_view>>
      values;
  // Arrow's validity bitmap: value i is null if bit (first_bit + i) is 0, least significant bit
  // first. Null pointer: no value is null.
  const uint8_t* validity = nullptr;
  size_t first_bit = 0;

  // Returns a view of `size` numbers at `data`, none of them null. Requires a fixed-width type and
  // aligned `data`.
  static ColumnSpan OfNumbers(DataType type, const void* data, size_t size);

  size_t size() const {
    return std::visit([](const auto& span) { return span.size(); }, values);
  }
  bool is_null(size_t i) const {
    return validity != nullptr && (validity[(first_bit + i) / 8] >> ((first_bit + i) % 8) & 1) == 0;
  }
};

// Values of one type, some of them null, that own their memory. Queries return one per column.
// Reusable: Clear() keeps the capacity.
//
// The layout is Arrow's: numbers are contiguous in the C++ type of the column. Text and bytes are a
// data buffer with 64-bit offsets (large_binary). A validity bitmap exists only if a value is null.
// A null slot contains 0 or "". Floating-point numbers keep their bits, including NaNs and -0.0.
//
// Const methods are thread-safe as long as no thread changes the column. Append and AppendColumn
// return errors; the other methods throw std::bad_alloc if memory runs out. In both cases nothing
// is appended.
class ColumnValues {
 public:
  explicit ColumnValues(DataType type = DataType::kU64) { Clear(type); }

  DataType type() const { return type_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t null_count() const { return null_count_; }

  // Removes all values. The overload with `type` also sets the type of the values to come.
  void Clear() { Clear(type_); }
  void Clear(DataType type);
  // Removes the values from index `size` on. Requires size <= size().
  void Truncate(size_t size);
  // Reserves capacity for `values` more values; for text and bytes, with `bytes` bytes in total.
  void Reserve(size_t values, size_t bytes = 0);

  // Appends one value or a null. As in KeyCodec::Append, a float type accepts an integer only if it
  // is exactly representable. An integer type accepts a float only if it is an integer in range. A
  // double is rounded to the nearest f32. Errors: InvalidArgument, with the expected and the actual
  // value, if the value does not fit the type or is longer than KeyCodec::kMaxKeyBytes;
  // ResourceExhausted.
  absl::Status Append(const DataValue& value);
  // Appends the values of a column. Errors: InvalidArgument if the type differs (text and bytes
  // take string_views), or, with the position, if a value is longer than KeyCodec::kMaxKeyBytes;
  // ResourceExhausted.
  absl::Status AppendColumn(const ColumnSpan& column);

  // Appends `count` nulls.
  void AppendNull(size_t count = 1);
  // Appends one number. T must be the C++ type of type().
  template <typename T>
  void AppendNumber(T number) {
    ExtendValidity(1);
    Vector<T>()->push_back(number);
    ++size_;
  }
  // Appends one text. Requires type() to be text or bytes, and at most KeyCodec::kMaxKeyBytes
  // bytes.
  void AppendBytes(std::string_view bytes);
  // Appends `count` zeros for the caller to overwrite and returns a pointer to the first. T must be
  // the C++ type of type(). Valid until the column changes.
  template <typename T>
  T* ExtendNumbers(size_t count);
  // Appends values [first, first + count) of another column of the same type.
  void AppendFrom(const ColumnValues& other, size_t first, size_t count);
  // Makes value i null and sets a number to 0; text or bytes must already be "". Requires i <
  // size().
  void SetNull(size_t i);

  // Access to value i. Requires i < size(). Bytes, and text in a DataValue, are valid until the
  // column changes. bytes() requires type() to be text or bytes.
  bool is_null(size_t i) const {
    return null_count_ != 0 && (validity_[i / 8] >> (i % 8) & 1) == 0;
  }
  std::string_view bytes(size_t i) const { return strings()[i]; }
  DataValue value(size_t i) const;

  // Returns all numbers. T must be the C++ type of type(). Valid until the column changes.
  template <typename T>
  absl::Span<const T> numbers() const {
    return *Vector<T>();
  }
  // Returns all numbers as size() * width() bytes, whatever their type; null for text and bytes.
  const void* data() const;
  // Returns the size of a number in bytes; 0 for text and bytes.
  size_t width() const;
  // Returns all values of a text or bytes column. Requires type() to be text or bytes.
  const StringList& strings() const {
    assert(std::holds_alternative<StringList>(values_));
    return *std::get_if<StringList>(&values_);
  }
  // Returns Arrow's validity bitmap, starting at bit 0, with (size() + 7) / 8 bytes; null if no
  // value is null.
  const uint8_t* validity() const { return null_count_ == 0 ? nullptr : validity_.data(); }

  // Returns a view of all values for KeyCodec, valid until the column changes. For text and bytes,
  // this builds an array of string_views.
  ColumnSpan View();

  // Returns the bytes of memory allocated for the values.
  size_t memory_bytes() const;

 private:
  // In the order of DataType, except that text and bytes are both StringList.
  using Values = std::variant<std::vector<uint8_t>, std::vector<uint16_t>, std::vector<uint32_t>,
                              std::vector<uint64_t>, std::vector<int8_t>, std::vector<int16_t>,
                              std::vector<int32_t>, std::vector<int64_t>, std::vector<float>,
                              std::vector<double>, StringList>;

  template <typename T>
  std::vector<T>* Vector() {
    assert(std::holds_alternative<std::vector<T>>(values_));
    return std::get_if<std::vector<T>>(&values_);
  }
  template <typename T>
  const std::vector<T>* Vector() const {
    assert(std::holds_alternative<std::vector<T>>(values_));
    return std::get_if<std::vector<T>>(&values_);
  }
  StringList* MutableStrings() { return std::get_if<StringList>(&values_); }
  // Extends the bitmap, if there is one, for `count` more values that are not null.
  void ExtendValidity(size_t count) {
    if (null_count_ != 0) validity_.resize((size_ + count + 7) / 8, 0xFF);
  }

  DataType type_ = DataType::kU64;
  size_t size_ = 0;
  size_t null_count_ = 0;
  Values values_;
  std::vector<uint8_t> validity_;  // used only if null_count_ > 0; bits past the last value are 1
  std::vector<std::string_view> views_;  // built by View()
};

template <typename T>
T* ColumnValues::ExtendNumbers(size_t count) {
  std::vector<T>& numbers = *Vector<T>();
  ExtendValidity(count);
  numbers.resize(size_ + count);
  size_ += count;
  return numbers.data() + (size_ - count);
}

}  // namespace cairn
