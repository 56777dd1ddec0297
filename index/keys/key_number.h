#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/key_codec.h"

namespace cairn {

// Bytes of a number of this type; 0 for text and bytes.
constexpr size_t FixedWidth(KeyType type) {
  switch (type) {
    case KeyType::kU8:
    case KeyType::kI8:
      return 1;
    case KeyType::kU16:
    case KeyType::kI16:
      return 2;
    case KeyType::kU32:
    case KeyType::kI32:
    case KeyType::kF32:
      return 4;
    case KeyType::kU64:
    case KeyType::kI64:
    case KeyType::kF64:
      return 8;
    case KeyType::kText:
    case KeyType::kBytes:
      return 0;
  }
  return 0;
}

constexpr bool IsUnsigned(KeyType type) {
  return type <= KeyType::kU64;
}
constexpr bool IsSigned(KeyType type) {
  return type >= KeyType::kI8 && type <= KeyType::kI64;
}
constexpr bool IsFloat(KeyType type) {
  return type == KeyType::kF32 || type == KeyType::kF64;
}

// Reads all of `text` as a number of a fixed-width type: decimal, without blanks, signs other than
// '-', or anything behind; for floats also "nan", "inf" and "-inf". A decimal fraction is rounded
// to the type's nearest value. InvalidArgument, with what was expected and found.
absl::Status ParseNumber(std::string_view text, KeyType type, KeyValue* value);

// Appends a number as ParseNumber reads it back; the shortest text that does for a float.
// `value` holds uint64_t, int64_t or double as `type` is unsigned, signed or a float, and in range.
void AppendNumber(const KeyValue& value, KeyType type, std::string* text);

// The bits of `value` as a number of a fixed-width type, in its low FixedWidth(type) bytes:
// unsigned, two's complement, or IEEE 754. Integers become floats, and floats integers, only where
// that is exact; a double for f32 is rounded to nearest. InvalidArgument, with what was expected
// and found, for a value that does not fit the type.
absl::Status NumberBits(const KeyValue& value, KeyType type, uint64_t* bits);

// The bytes of `value` as one of text or bytes. InvalidArgument, with what was expected and found,
// for a value that is a number.
absl::Status TextBytes(const KeyValue& value, KeyType type, std::string_view* bytes);

// A value for a message: 17, -0.5, 'some text', null.
std::string Described(const KeyValue& value);

}  // namespace cairn
