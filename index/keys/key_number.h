#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/key_codec.h"

namespace cairn {

// Bytes of a number of this type; 0 for text and bytes.
constexpr size_t FixedWidth(DataType type) {
  switch (type) {
    case DataType::kU8:
    case DataType::kI8:
      return 1;
    case DataType::kU16:
    case DataType::kI16:
      return 2;
    case DataType::kU32:
    case DataType::kI32:
    case DataType::kF32:
      return 4;
    case DataType::kU64:
    case DataType::kI64:
    case DataType::kF64:
      return 8;
    case DataType::kText:
    case DataType::kBytes:
      return 0;
  }
  return 0;
}

constexpr bool IsUnsigned(DataType type) {
  return type <= DataType::kU64;
}
constexpr bool IsSigned(DataType type) {
  return type >= DataType::kI8 && type <= DataType::kI64;
}
constexpr bool IsFloat(DataType type) {
  return type == DataType::kF32 || type == DataType::kF64;
}

// Parses all of `text` as a number of a fixed-width type: decimal, without blanks, signs other than
// '-', or trailing bytes; for floats also "nan", "inf" and "-inf". A decimal fraction is rounded to
// the type's nearest value. Errors: InvalidArgument, with the expected and the found text.
absl::Status ParseNumber(std::string_view text, DataType type, DataValue* value);

// Appends a number in the notation of ParseNumber; for a float, the shortest text that parses to
// it. `value` holds uint64_t, int64_t or double as `type` is unsigned, signed or a float, and in
// range.
void AppendNumber(const DataValue& value, DataType type, std::string* text);

// The bits of `value` as a number of a fixed-width type, in its low FixedWidth(type) bytes:
// unsigned, two's complement, or IEEE 754. Integers become floats, and floats integers, only if
// that is exact; a double for f32 is rounded to nearest. Errors: InvalidArgument, with the expected
// and the found value, if it does not fit the type.
absl::Status NumberBits(const DataValue& value, DataType type, uint64_t* bits);

// The bytes of `value`, which must be text or bytes. Errors: InvalidArgument, with the expected and
// the found value, if it is a number.
absl::Status TextBytes(const DataValue& value, DataType type, std::string_view* bytes);

// A value for a message: 17, -0.5, 'some text', null.
std::string Described(const DataValue& value);

}  // namespace cairn
