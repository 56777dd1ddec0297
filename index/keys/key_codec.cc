#include "cairn/key_codec.h"

#include <string>

#include "absl/strings/str_format.h"
#include "index/keys/key_encoding.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr size_t kMaxParts = 16;

// `status` with the name of its part before its message.
absl::Status InPart(const KeyCodec& codec, size_t part, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrFormat("part %d (%s): %s", part + 1,
                                      DataTypeName(codec.parts()[part]), status.message()));
}

// Bytes of a packed key, its parts together.
size_t PackedWidth(const KeyCodec& codec) {
  size_t width = 0;
  for (size_t i = 0; i < codec.parts().size(); ++i) width += PartLayout::Of(codec, i).width();
  return width;
}

// The concatenated encodings of `values`, the codec's leading parts.
absl::Status EncodeParts(const KeyCodec& codec, absl::Span<const DataValue> values,
                         std::string* key) {
  for (size_t i = 0; i < values.size(); ++i) {
    absl::Status status = AppendPart(PartLayout::Of(codec, i), values[i], key);
    if (status.ok() && key->size() > KeyCodec::kMaxKeyBytes) {
      status = absl::InvalidArgumentError(absl::StrFormat(
          "expected at most %d bytes in a key, found %d", KeyCodec::kMaxKeyBytes, key->size()));
    }
    if (!status.ok()) return InPart(codec, i, status);
  }
  return absl::OkStatus();
}

absl::Status CheckColumn(const KeyCodec& codec, const EncodedKeys& keys) {
  if (keys.kind() == codec.kind()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("expected a column of %s keys, found one of %s",
                                                    PhysicalTypeName(codec.kind()),
                                                    PhysicalTypeName(keys.kind())));
}

void AppendFixed(uint64_t key, EncodedKeys* keys) {
  if (keys->kind() == PhysicalType::kU32) {
    keys->AppendU32(static_cast<uint32_t>(key));
  } else {
    keys->AppendU64(key);
  }
}

// Appends the range of the keys that start with `prefix`, the leading bytes of a packed key of
// `width` bytes.
void AppendPackedRange(std::string_view prefix, size_t width, EncodedKeys* lower,
                       EncodedKeys* upper, bool* upper_open) {
  const size_t behind = 8 * (width - prefix.size());  // bits; below 64 as the prefix is not empty
  const uint64_t first = ReadBigEndian(prefix) << behind;
  const uint64_t last = first + ((uint64_t{1} << behind) - 1);
  *upper_open = last == (lower->kind() == PhysicalType::kU32 ? uint64_t{UINT32_MAX} : UINT64_MAX);
  AppendFixed(first, lower);
  AppendFixed(*upper_open ? 0 : last + 1, upper);
}

// Appends the range of the byte strings that start with `prefix`.
void AppendBytesRange(std::string prefix, EncodedKeys* lower, EncodedKeys* upper,
                      bool* upper_open) {
  lower->AppendBytes(prefix);
  while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
  *upper_open = prefix.empty();
  if (!prefix.empty()) ++prefix.back();
  upper->AppendBytes(prefix);
}

}  // namespace

std::string_view DataTypeName(DataType type) {
  switch (type) {
    case DataType::kU8:
      return "u8";
    case DataType::kU16:
      return "u16";
    case DataType::kU32:
      return "u32";
    case DataType::kU64:
      return "u64";
    case DataType::kI8:
      return "i8";
    case DataType::kI16:
      return "i16";
    case DataType::kI32:
      return "i32";
    case DataType::kI64:
      return "i64";
    case DataType::kF32:
      return "f32";
    case DataType::kF64:
      return "f64";
    case DataType::kText:
      return "text";
    case DataType::kBytes:
      return "bytes";
  }
  return "unknown";
}

absl::StatusOr<KeyCodec> KeyCodec::Create(absl::Span<const DataType> parts, NullPolicy nulls) try {
  if (parts.empty() || parts.size() > kMaxParts) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected 1 to %d parts in a key, found %d", kMaxParts, parts.size()));
  }
  KeyCodec codec;
  codec.parts_.assign(parts.begin(), parts.end());
  codec.nulls_ = nulls;
  bool fixed = true;
  size_t width = 0;
  for (const DataType type : parts) {
    fixed = fixed && FixedWidth(type) != 0;
    width += FixedWidth(type) + (nulls == NullPolicy::kSkip ? 0 : 1);
  }
  codec.kind_ = !fixed || width > 8 ? PhysicalType::kBytes
                : width > 4         ? PhysicalType::kU64
                                    : PhysicalType::kU32;
  return codec;
} catch (...) {
  return StatusOfException("making a key codec");
}

absl::Status KeyCodec::Append(absl::Span<const DataValue> values, EncodedKeys* keys) const try {
  RETURN_IF_ERROR(CheckColumn(*this, *keys));
  if (values.size() != parts_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected %d value%s, one for each part, found %d", parts_.size(),
                        parts_.size() == 1 ? "" : "s", values.size()));
  }
  std::string key;
  RETURN_IF_ERROR(EncodeParts(*this, values, &key));
  if (kind_ == PhysicalType::kBytes) {
    keys->AppendBytes(key);
  } else {
    AppendFixed(ReadBigEndian(key), keys);
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("encoding a key");
}

absl::Status KeyCodec::AppendPrefixRange(absl::Span<const DataValue> values, bool last_is_prefix,
                                         EncodedKeys* lower, EncodedKeys* upper,
                                         bool* upper_open) const try {
  RETURN_IF_ERROR(CheckColumn(*this, *lower));
  RETURN_IF_ERROR(CheckColumn(*this, *upper));
  if (values.empty() || values.size() > parts_.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "expected 1 to %d values of leading parts, found %d", parts_.size(), values.size()));
  }
  const size_t whole = values.size() - (last_is_prefix ? 1 : 0);
  std::string key;
  RETURN_IF_ERROR(EncodeParts(*this, values.subspan(0, whole), &key));
  if (last_is_prefix) {
    const std::string_view* prefix = std::get_if<std::string_view>(&values[whole]);
    if (prefix == nullptr || FixedWidth(parts_[whole]) != 0) {
      return InPart(*this, whole,
                    absl::InvalidArgumentError(
                        absl::StrFormat("expected a prefix of text or bytes, found %s of type %s",
                                        Described(values[whole]), DataTypeName(parts_[whole]))));
    }
    absl::Status status = AppendPartPrefix(PartLayout::Of(*this, whole), *prefix, &key);
    if (!status.ok()) return InPart(*this, whole, status);
  }
  if (kind_ != PhysicalType::kBytes) {
    AppendPackedRange(key, PackedWidth(*this), lower, upper, upper_open);
  } else if (whole == parts_.size()) {
    // One key: its successor has an additional zero byte.
    lower->AppendBytes(key);
    key.push_back('\0');
    upper->AppendBytes(key);
    *upper_open = false;
  } else {
    AppendBytesRange(std::move(key), lower, upper, upper_open);
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("encoding a range of keys");
}

absl::Status KeyCodec::Decode(const EncodedKeys& keys, size_t i, std::vector<DataValue>* values,
                              std::string* scratch) const try {
  RETURN_IF_ERROR(CheckColumn(*this, keys));
  if (i >= keys.size()) {
    return absl::OutOfRangeError(
        absl::StrFormat("expected a position below %d, found %d", keys.size(), i));
  }
  std::string packed;
  std::string_view bytes;
  if (kind_ == PhysicalType::kBytes) {
    bytes = keys.bytes(i);
  } else {
    const uint64_t key = kind_ == PhysicalType::kU32 ? keys.u32(i) : keys.u64(i);
    const size_t width = PackedWidth(*this);
    if (width < 8 && key >> (8 * width) != 0) {
      return absl::DataLossError(
          absl::StrFormat("key %d: expected a key of %d bytes, found %#x", i, width, key));
    }
    AppendBigEndian(key, width, &packed);
    bytes = packed;
  }
  values->clear();
  scratch->clear();
  scratch->reserve(bytes.size());
  for (size_t part = 0; part < parts_.size(); ++part) {
    DataValue value;
    absl::Status status = TakePart(PartLayout::Of(*this, part), &bytes, &value, scratch);
    if (!status.ok()) {
      status = InPart(*this, part, status);
      return absl::Status(status.code(), absl::StrFormat("key %d, %s", i, status.message()));
    }
    values->push_back(value);
  }
  if (!bytes.empty()) {
    return absl::DataLossError(
        absl::StrFormat("key %d: expected its end, found %d bytes more", i, bytes.size()));
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("decoding a key");
}

}  // namespace cairn
