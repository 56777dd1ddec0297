#include "engine/util/scan_cursor.h"

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr size_t kHeaderBytes = 5;  // kind and key length

size_t NumberBytes(PhysicalType kind) {
  return kind == PhysicalType::kU32 ? 4 : 8;
}

}  // namespace

ScanCursor ScanCursor::After(const EncodedKeys& keys, size_t i, std::string_view primary_key) {
  ScanCursor cursor;
  cursor.kind = keys.kind();
  cursor.primary_key = primary_key;
  switch (cursor.kind) {
    case PhysicalType::kU32:
      cursor.number = keys.u32(i);
      break;
    case PhysicalType::kU64:
      cursor.number = keys.u64(i);
      break;
    case PhysicalType::kBytes:
      cursor.bytes = keys.bytes(i);
      break;
  }
  return cursor;
}

std::string ScanCursor::Encode() const {
  std::string text;
  AppendTo(&text);
  return text;
}

void ScanCursor::AppendTo(std::string* text) const {
  const size_t key_bytes = kind == PhysicalType::kBytes ? bytes.size() : NumberBytes(kind);
  text->reserve(text->size() + kHeaderBytes + key_bytes + primary_key.size());
  text->push_back(static_cast<char>(kind));
  for (int shift = 0; shift < 32; shift += 8) {
    text->push_back(static_cast<char>(key_bytes >> shift));
  }
  if (kind == PhysicalType::kBytes) {
    text->append(bytes);
  } else {
    for (size_t i = key_bytes; i-- > 0;) text->push_back(static_cast<char>(number >> (8 * i)));
  }
  text->append(primary_key);
}

absl::StatusOr<ScanCursor> ScanCursor::Decode(std::string_view text, PhysicalType kind) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.size() < kHeaderBytes || byte(0) != static_cast<uint8_t>(kind)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("not a cursor over keys of kind %s", PhysicalTypeName(kind)));
  }
  const size_t key_bytes =
      byte(1) | byte(2) << 8 | byte(3) << 16 | static_cast<size_t>(byte(4)) << 24;
  const std::string_view rest = text.substr(kHeaderBytes);
  if (key_bytes > rest.size() || (kind != PhysicalType::kBytes && key_bytes != NumberBytes(kind))) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a cursor of %d bytes cannot contain a key of %d bytes", text.size(), key_bytes));
  }
  ScanCursor cursor;
  cursor.kind = kind;
  cursor.primary_key = rest.substr(key_bytes);
  if (kind == PhysicalType::kBytes) {
    cursor.bytes = rest.substr(0, key_bytes);
  } else {
    for (size_t i = 0; i < key_bytes; ++i) {
      cursor.number = cursor.number << 8 | static_cast<uint8_t>(rest[i]);
    }
  }
  return cursor;
}

std::string ScanCursor::EncodeFor(const CursorTag& tag) const {
  std::string text;
  text.reserve(CursorTag::kBytes + kHeaderBytes + sizeof number + bytes.size() +
               primary_key.size());
  tag.AppendTo(&text);
  AppendTo(&text);
  return text;
}

absl::StatusOr<ScanCursor> ScanCursor::DecodeFor(const CursorTag& tag, const RangeBatch& ranges,
                                                 size_t i) {
  ASSIGN_OR_RETURN(const std::string_view position, tag.RemoveFrom(ranges, i));
  return Decode(position, ranges.kind());
}

}  // namespace cairn
