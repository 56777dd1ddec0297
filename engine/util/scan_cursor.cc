#include "engine/util/scan_cursor.h"

#include <type_traits>

#include "absl/strings/str_format.h"
#include "index/query/physical_key.h"
#include "index/query/range_column.h"

namespace cairn {
namespace {

constexpr size_t kHeaderBytes = 5;  // kind and key length

size_t NumberBytes(PhysicalType kind) {
  return kind == PhysicalType::kU32 ? 4 : 8;
}

}  // namespace

std::string ScanCursor::Encode() const {
  const size_t key_bytes = kind == PhysicalType::kBytes ? bytes.size() : NumberBytes(kind);
  std::string text;
  text.reserve(kHeaderBytes + key_bytes + primary_key.size());
  text.push_back(static_cast<char>(kind));
  for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<char>(key_bytes >> shift));
  if (kind == PhysicalType::kBytes) {
    text.append(bytes);
  } else {
    for (size_t i = key_bytes; i-- > 0;) text.push_back(static_cast<char>(number >> (8 * i)));
  }
  text.append(primary_key);
  return text;
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

absl::Status ScanCursor::CheckWithin(const RangeBatch& ranges, size_t i) const {
  const bool is_within = WithPhysicalKey(kind, [&](auto type) {
    using Key = typename decltype(type)::type;
    if constexpr (std::is_same_v<Key, std::string_view>) {
      return IsWithin<Key>(bytes, ranges, i);
    } else {
      return IsWithin<Key>(static_cast<Key>(number), ranges, i);
    }
  });
  if (is_within) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the cursor belongs to another query: its key is outside the range");
}

}  // namespace cairn
