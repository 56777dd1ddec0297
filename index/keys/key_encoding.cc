#include "index/keys/key_encoding.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr char kEscapedZero = '\xFF';  // after a zero byte: the text contains a zero byte
constexpr char kEnd = '\0';            // after a zero byte: the text ends

// The first byte of a part if nulls are kept.
char NullMark(NullPolicy nulls) {
  return nulls == NullPolicy::kFirst ? '\0' : '\1';
}
char ValueMark(NullPolicy nulls) {
  return nulls == NullPolicy::kFirst ? '\1' : '\0';
}

void AppendEscaped(std::string_view text, std::string* key) {
  while (true) {
    const size_t zero = text.find('\0');
    key->append(text.substr(0, zero));
    if (zero == std::string_view::npos) return;
    key->push_back('\0');
    key->push_back(kEscapedZero);
    text.remove_prefix(zero + 1);
  }
}

// Takes an escaped text and its end from the front of `bytes`. Returns false if it has no end, or
// an escape that AppendEscaped does not write.
bool TakeEscaped(std::string_view* bytes, std::string* text) {
  while (true) {
    const size_t zero = bytes->find('\0');
    if (zero == std::string_view::npos || zero + 1 == bytes->size()) return false;
    text->append(bytes->substr(0, zero));
    const char next = (*bytes)[zero + 1];
    bytes->remove_prefix(zero + 2);
    if (next == kEnd) return true;
    if (next != kEscapedZero) return false;
    text->push_back('\0');
  }
}

absl::Status TooLong(size_t bytes) {
  return absl::InvalidArgumentError(absl::StrFormat("expected at most %d bytes in a key, found %d",
                                                    KeyCodec::kMaxKeyBytes, bytes));
}

}  // namespace

absl::Status OrderedNumber(DataType type, uint64_t ordered, DataValue* value) {
  if (IsUnsigned(type)) {
    *value = ordered;
    return absl::OkStatus();
  }
  if (IsSigned(type)) {
    const unsigned unused = 64 - 8 * FixedWidth(type);
    // The sign bit is flipped back and extended.
    const uint64_t bits = (ordered << unused) ^ (uint64_t{1} << 63);
    *value = static_cast<int64_t>(bits) >> unused;
    return absl::OkStatus();
  }
  double number;
  bool canonical;
  if (type == DataType::kF32) {
    const uint32_t bits = static_cast<uint32_t>(ordered);
    const float narrow = std::bit_cast<float>((bits & 0x80000000) != 0 ? bits & 0x7FFFFFFF : ~bits);
    number = static_cast<double>(narrow);
    canonical = OrderedBits(narrow) == bits;
  } else {
    constexpr uint64_t kSign = uint64_t{1} << 63;
    number = std::bit_cast<double>((ordered & kSign) != 0 ? ordered & ~kSign : ~ordered);
    canonical = OrderedBits(number) == ordered;
  }
  if (!canonical) {
    return absl::DataLossError(
        absl::StrFormat("expected an encoded %s, found the bits %x", DataTypeName(type), ordered));
  }
  *value = number;
  return absl::OkStatus();
}

void AppendBigEndian(uint64_t number, size_t width, std::string* bytes) {
  char digits[8];
  for (size_t i = 0; i < 8; ++i) digits[i] = static_cast<char>(number >> (56 - 8 * i));
  bytes->append(digits + 8 - width, width);
}

uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

PartLayout PartLayout::Of(const KeyCodec& codec, size_t i) {
  PartLayout layout;
  layout.type = codec.parts()[i];
  layout.nulls = codec.nulls();
  layout.last = i + 1 == codec.parts().size();
  layout.packed = codec.kind() != PhysicalType::kBytes;
  return layout;
}

absl::Status AppendPart(const PartLayout& layout, const DataValue& value, std::string* key) {
  const size_t width = FixedWidth(layout.type);
  if (std::holds_alternative<std::monostate>(value)) {
    if (layout.nulls == NullPolicy::kSkip) {
      return absl::InvalidArgumentError("expected a value, found null, which nulls=skip keeps out");
    }
    key->push_back(NullMark(layout.nulls));
    if (layout.packed) key->append(width, '\0');
    return absl::OkStatus();
  }
  if (width != 0) {
    uint64_t bits = 0;
    RETURN_IF_ERROR(NumberBits(value, layout.type, &bits));
    AppendPartNumber(layout, OrderedBits(bits, layout.type), key);
    return absl::OkStatus();
  }
  std::string_view text;
  RETURN_IF_ERROR(TextBytes(value, layout.type, &text));
  RETURN_IF_ERROR(AppendPartPrefix(layout, text, key));
  if (!layout.last) {
    key->push_back('\0');
    key->push_back(kEnd);
  }
  return absl::OkStatus();
}

void AppendPartNumber(const PartLayout& layout, uint64_t ordered, std::string* key) {
  if (layout.nulls != NullPolicy::kSkip) key->push_back(ValueMark(layout.nulls));
  AppendBigEndian(ordered, FixedWidth(layout.type), key);
}

uint64_t PackedNumber(const PartLayout& layout, uint64_t ordered) {
  if (layout.nulls == NullPolicy::kSkip) return ordered;
  return static_cast<uint64_t>(ValueMark(layout.nulls)) << (8 * FixedWidth(layout.type)) | ordered;
}

uint64_t PackedNull(const PartLayout& layout) {
  return static_cast<uint64_t>(NullMark(layout.nulls)) << (8 * FixedWidth(layout.type));
}

absl::Status AppendPartPrefix(const PartLayout& layout, std::string_view prefix, std::string* key) {
  if (prefix.size() > KeyCodec::kMaxKeyBytes) return TooLong(prefix.size());
  if (layout.nulls != NullPolicy::kSkip) key->push_back(ValueMark(layout.nulls));
  if (layout.last) {
    key->append(prefix);
  } else {
    AppendEscaped(prefix, key);
  }
  return absl::OkStatus();
}

absl::Status TakePart(const PartLayout& layout, std::string_view* bytes, DataValue* value,
                      std::string* scratch) {
  const size_t width = FixedWidth(layout.type);
  if (layout.nulls != NullPolicy::kSkip) {
    if (bytes->empty()) {
      return absl::DataLossError("expected a byte for null or not, found the key's end");
    }
    const char mark = bytes->front();
    bytes->remove_prefix(1);
    if (mark == NullMark(layout.nulls)) {
      const size_t padding = layout.packed ? width : 0;
      if (ReadBigEndian(bytes->substr(0, padding)) != 0) {
        return absl::DataLossError("expected zeros after a null, found other bytes");
      }
      bytes->remove_prefix(padding);
      *value = std::monostate();
      return absl::OkStatus();
    }
    if (mark != ValueMark(layout.nulls)) {
      return absl::DataLossError(absl::StrFormat("expected a byte 0 or 1 for null or not, found %d",
                                                 static_cast<unsigned char>(mark)));
    }
  }
  if (width != 0) {
    if (bytes->size() < width) {
      return absl::DataLossError(absl::StrFormat("expected %d bytes of %s, found %d", width,
                                                 DataTypeName(layout.type), bytes->size()));
    }
    const uint64_t ordered = ReadBigEndian(bytes->substr(0, width));
    bytes->remove_prefix(width);
    return OrderedNumber(layout.type, ordered, value);
  }
  const size_t start = scratch->size();
  if (layout.last) {
    scratch->append(*bytes);
    bytes->remove_prefix(bytes->size());
  } else if (!TakeEscaped(bytes, scratch)) {
    return absl::DataLossError(
        absl::StrFormat("expected zero bytes before FF in %s and 00 00 at its end, found otherwise",
                        DataTypeName(layout.type)));
  }
  *value = std::string_view(*scratch).substr(start);
  return absl::OkStatus();
}

uint32_t OrderPreserving(int32_t value) {
  return static_cast<uint32_t>(value) ^ 0x80000000;
}
uint64_t OrderPreserving(int64_t value) {
  return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
}
uint32_t OrderPreserving(float value) {
  return OrderedBits(value);
}
uint64_t OrderPreserving(double value) {
  return OrderedBits(value);
}

}  // namespace cairn
