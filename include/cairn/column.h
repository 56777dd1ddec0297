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

// Byte strings, one after the other in one heap. Reusable: Clear() keeps the capacity. Not
// thread-safe.
class StringList {
 public:
  size_t size() const { return ends_.size() - 1; }
  bool empty() const { return size() == 0; }
  // String i; requires i < size(). Valid until the list changes.
  std::string_view operator[](size_t i) const {
    return std::string_view(heap_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

  // All strings one after the other, and the size() + 1 offsets of where each begins and the last
  // one ends: Arrow's layout of a large_binary column. Valid until the list changes.
  std::string_view heap() const { return heap_; }
  const std::vector<uint64_t>& offsets() const { return ends_; }

  void Clear() { heap_.clear(), ends_.resize(1); }
  // Removes the strings from `size` on; requires size <= size().
  void Truncate(size_t size) { ends_.resize(size + 1), heap_.resize(ends_[size]); }
  // Makes room for more strings, and for their bytes in all.
  void Reserve(size_t strings, size_t bytes) {
    heap_.reserve(heap_.size() + bytes), ends_.reserve(ends_.size() + strings);
  }
  void Append(std::string_view string) { Append(string, std::string_view()); }
  // One string of two pieces.
  void Append(std::string_view begin, std::string_view rest) {
    heap_.append(begin).append(rest);
    ends_.push_back(heap_.size());
  }

  // Walks the strings in their order.
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
  std::vector<uint64_t> ends_ = {0};  // string i ends at ends_[i + 1] of heap_
};

using StringList = StringList;

// The values that parts of keys and included columns have.

// The logical type of one part of a secondary key, or of an included column.
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

// "u8" … "f64", "text", "bytes".
std::string_view DataTypeName(DataType type);

// One logical value, as an extractor or a caller gives it; std::monostate is null. A string_view
// owns nothing.
using DataValue = std::variant<std::monostate, uint64_t, int64_t, double, std::string_view>;

// The values of one part of many keys, as Arrow, NumPy or a C++ program has them: a view that owns
// nothing.
struct ColumnSpan {
  std::variant<absl::Span<const uint8_t>, absl::Span<const uint16_t>, absl::Span<const uint32_t>,
               absl::Span<const uint64_t>, absl::Span<const int8_t>, absl::Span<const int16_t>,
               absl::Span<const int32_t>, absl::Span<const int64_t>, absl::Span<const float>,
               absl::Span<const double>, absl::Span<const std::string_view>>
      values;
  // Arrow's validity bitmap: value i is null where bit first_bit + i is 0, of which a byte's least
  // significant is the first. A null pointer: no value is null.
  const uint8_t* validity = nullptr;
  size_t first_bit = 0;

  // `size` numbers of a fixed-width type, which are at `data`, aligned; none is null.
  static ColumnSpan OfNumbers(DataType type, const void* data, size_t size);

  size_t size() const {
    return std::visit([](const auto& span) { return span.size(); }, values);
  }
  bool is_null(size_t i) const {
    return validity != nullptr && (validity[(first_bit + i) / 8] >> ((first_bit + i) % 8) & 1) == 0;
  }
};

// Values of one type, some of them null, that own their memory: what a gather or a scan of columns
// returns, one of these a column. Reusable: Clear() keeps the capacity.
//
// The layout is Arrow's: numbers one after the other in the column's own C++ type, text and bytes
// as a heap and 64-bit offsets into it (large_binary), and a validity bitmap only where something
// is null. A null slot holds 0 or "". Floats are kept bit for bit, NaNs and -0.0 included.
//
// Not thread-safe while it changes; else safe from any number of threads. Append, AppendColumn and
// the reading methods return errors; the others throw std::bad_alloc as containers do. Either way
// nothing is appended then.
class ColumnValues {
 public:
  explicit ColumnValues(DataType type = DataType::kU64) { Clear(type); }

  DataType type() const { return type_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t null_count() const { return null_count_; }

  // Removes all values, and sets the type of those to come.
  void Clear() { Clear(type_); }
  void Clear(DataType type);
  // Removes the values from `size` on; requires size <= size().
  void Truncate(size_t size);
  // Makes room for more values, and for their bytes in all where they are text or bytes.
  void Reserve(size_t values, size_t bytes = 0);

  // Appends one value, or a null. InvalidArgument, with what was expected and found, where it does
  // not fit the type: a number out of range, text for a number, a number for text, bytes beyond
  // KeyCodec::kMaxKeyBytes. As KeyCodec::Append, integers are accepted for floats only if exact,
  // and the reverse; a double for f32 is rounded to nearest.
  absl::Status Append(const DataValue& value);
  // Appends a column of exactly this type (string_views are for text and bytes). InvalidArgument,
  // naming the position, for bytes beyond KeyCodec::kMaxKeyBytes.
  absl::Status AppendColumn(const ColumnSpan& column);

  // Appends `count` nulls.
  void AppendNull(size_t count = 1);
  // Appends one number; requires that T be the type's.
  template <typename T>
  void AppendNumber(T number) {
    ExtendValidity(1);
    Vector<T>()->push_back(number);
    ++size_;
  }
  // Appends one text; requires that the type be text or bytes, and at most KeyCodec::kMaxKeyBytes.
  void AppendBytes(std::string_view bytes);
  // Appends `count` zeros, for the caller to set, and returns the first of them; requires that T be
  // the type's. Valid until the column changes.
  template <typename T>
  T* ExtendNumbers(size_t count);
  // Appends values [first, first + count) of a column of the same type, which is not this one.
  void AppendFrom(const ColumnValues& other, size_t first, size_t count);
  // Makes value i null, a number 0; text or bytes must be "" already. Requires i < size().
  void SetNull(size_t i);

  // Value i; each requires i < size(). Bytes, and text as a DataValue, are valid until the column
  // changes; bytes() requires that the type be text or bytes.
  bool is_null(size_t i) const {
    return null_count_ != 0 && (validity_[i / 8] >> (i % 8) & 1) == 0;
  }
  std::string_view bytes(size_t i) const { return strings()[i]; }
  DataValue value(size_t i) const;

  // All numbers; requires that T be the type's. Valid until the column changes.
  template <typename T>
  absl::Span<const T> numbers() const {
    return *Vector<T>();
  }
  // All numbers, whatever their type: size() times width() bytes.
  const void* data() const;
  // Bytes of a number; 0 for text and bytes.
  size_t width() const;
  // All text or bytes: heap, and size() + 1 offsets. Requires that the type be one of these.
  const StringList& strings() const {
    assert(std::holds_alternative<StringList>(values_));
    return *std::get_if<StringList>(&values_);
  }
  // Arrow's validity bitmap from bit 0 on, (size() + 7) / 8 bytes; null where no value is null.
  const uint8_t* validity() const { return null_count_ == 0 ? nullptr : validity_.data(); }

  // All values as a KeyCodec takes them, valid until the column changes. Of text and bytes it makes
  // an array of views.
  ColumnSpan View();

  // Bytes of memory that the values take.
  size_t memory_bytes() const;

 private:
  // In DataType's order; text and bytes are both StringList.
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
  // Makes room in the bitmap, if there is one, for `count` more values, which are not null.
  void ExtendValidity(size_t count) {
    if (null_count_ != 0) validity_.resize((size_ + count + 7) / 8, 0xFF);
  }

  DataType type_ = DataType::kU64;
  size_t size_ = 0;
  size_t null_count_ = 0;
  Values values_;
  std::vector<uint8_t> validity_;  // in use where null_count_ > 0; bits behind the last value are 1
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
