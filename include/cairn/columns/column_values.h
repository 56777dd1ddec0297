#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "cairn/absl_forward.h"
#include "cairn/columns/key_value.h"
#include "cairn/string_list.h"

namespace cairn {

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
  explicit ColumnValues(KeyType type = KeyType::kU64) { Clear(type); }

  KeyType type() const { return type_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t null_count() const { return null_count_; }

  // Removes all values, and sets the type of those to come.
  void Clear() { Clear(type_); }
  void Clear(KeyType type);
  // Removes the values from `size` on; requires size <= size().
  void Truncate(size_t size);
  // Makes room for more values, and for their bytes in all where they are text or bytes.
  void Reserve(size_t values, size_t bytes = 0);

  // Appends one value, or a null. InvalidArgument, with what was expected and found, where it does
  // not fit the type: a number out of range, text for a number, a number for text, bytes beyond
  // KeyCodec::kMaxKeyBytes. As KeyCodec::Append, integers are accepted for floats only if exact,
  // and the reverse; a double for f32 is rounded to nearest.
  absl::Status Append(const KeyValue& value);
  // Appends a column of exactly this type (string_views are for text and bytes). InvalidArgument,
  // naming the position, for bytes beyond KeyCodec::kMaxKeyBytes.
  absl::Status AppendColumn(const PartColumn& column);

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

  // Value i; each requires i < size(). Bytes, and text as a KeyValue, are valid until the column
  // changes; bytes() requires that the type be text or bytes.
  bool is_null(size_t i) const {
    return null_count_ != 0 && (validity_[i / 8] >> (i % 8) & 1) == 0;
  }
  std::string_view bytes(size_t i) const { return strings()[i]; }
  KeyValue value(size_t i) const;

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
  PartColumn View();

  // Bytes of memory that the values take.
  size_t memory_bytes() const;

 private:
  // In KeyType's order; text and bytes are both StringList.
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

  KeyType type_ = KeyType::kU64;
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
