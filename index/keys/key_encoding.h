#pragma once

// The order-preserving encoding of one part of a key (cairn/key_codec.h defines how parts form a
// key).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/key_codec.h"
#include "index/keys/key_number.h"

namespace cairn {

// The one NaN of ordered floats: above every other bit pattern that is used.
inline constexpr uint32_t kOrderedNaN32 = 0xFFC00000;
inline constexpr uint64_t kOrderedNaN64 = 0xFFF8000000000000;

// Order-preserving maps to unsigned integers.
constexpr uint32_t OrderedBits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return kOrderedNaN32;
  return (bits & 0x80000000) != 0 ? ~bits : bits | 0x80000000;
}
constexpr uint64_t OrderedBits(double value) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  if ((bits & ~kSign) > 0x7FF0000000000000) return kOrderedNaN64;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// The same for the bits of a number as by NumberBits, or as stored in a row.
constexpr uint64_t OrderedBits(uint64_t bits, DataType type) {
  if (IsUnsigned(type)) return bits;
  if (IsSigned(type)) return bits ^ (uint64_t{1} << (8 * FixedWidth(type) - 1));
  return type == DataType::kF32 ? OrderedBits(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                                : OrderedBits(std::bit_cast<double>(bits));
}

// The low `width` bytes of `number`, most significant first.
void AppendBigEndian(uint64_t number, size_t width, std::string* bytes);
// All of `bytes`, at most 8, as a big-endian number.
uint64_t ReadBigEndian(std::string_view bytes);

// The layout of one part of a key.
struct PartLayout {
  DataType type = DataType::kBytes;
  NullPolicy nulls = NullPolicy::kSkip;
  bool last = true;     // text and bytes need no end
  bool packed = false;  // the key is u32 or u64: a null is as wide as a value

  // Part `i` of a codec's keys.
  static PartLayout Of(const KeyCodec& codec, size_t i);

  // Bytes of this part if it is fixed-width, including the byte for null or not; otherwise 0.
  size_t width() const {
    const size_t width = FixedWidth(type);
    return width == 0 ? 0 : width + (nulls == NullPolicy::kSkip ? 0 : 1);
  }
};

// Appends the encoding of one value; keys are the concatenation of their parts' encodings;
// packed keys are that number in big-endian order. Errors: InvalidArgument, with nothing appended,
// if a value does not fit the type or would need more than KeyCodec::kMaxKeyBytes.
absl::Status AppendPart(const PartLayout& layout, const DataValue& value, std::string* key);

// The same for a number whose OrderedBits are known.
void AppendPartNumber(const PartLayout& layout, uint64_t ordered, std::string* key);

// The same encodings as a number of layout.width() bytes, for packed keys.
uint64_t PackedNumber(const PartLayout& layout, uint64_t ordered);
uint64_t PackedNull(const PartLayout& layout);

// Appends the common prefix of the encodings of all text that starts with `prefix`.
absl::Status AppendPartPrefix(const PartLayout& layout, std::string_view prefix, std::string* key);

// The number whose OrderedBits these are: uint64_t, int64_t or double. Errors: DataLoss if no
// number has them.
absl::Status OrderedNumber(DataType type, uint64_t ordered, DataValue* value);

// Takes one encoding from the front of `bytes`. Text is unescaped to the end of `*scratch`, which
// must have room for all of `bytes` so that it does not move. Errors: DataLoss if no
// value of the layout has this encoding.
absl::Status TakePart(const PartLayout& layout, std::string_view* bytes, DataValue* value,
                      std::string* scratch);

}  // namespace cairn
