#include "engine/join/join_cursor.h"

#include <cstddef>

#include "absl/status/status.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr size_t kHeaderBytes = 12;

void AppendU32(uint32_t number, std::string* text) {
  for (int shift = 0; shift < 32; shift += 8) text->push_back(static_cast<char>(number >> shift));
}

uint32_t U32At(std::string_view text, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) {
    number |= uint32_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  }
  return number;
}

}  // namespace

std::string JoinCursor::Encode() const {
  ScanCursor scan = key;
  scan.primary_key = left.primary_key;
  const std::string place = scan.Encode();
  std::string text;
  AppendU32(left.shard, &text);
  AppendU32(right.shard, &text);
  AppendU32(static_cast<uint32_t>(place.size()), &text);
  text.append(place).append(right.primary_key);
  return text;
}

absl::StatusOr<JoinCursor> JoinCursor::Decode(std::string_view text, PhysicalType kind) {
  if (text.size() < kHeaderBytes || U32At(text, 8) > text.size() - kHeaderBytes) {
    return absl::InvalidArgumentError("expected the cursor of a join, found something else");
  }
  const size_t place_bytes = U32At(text, 8);
  JoinCursor cursor;
  ASSIGN_OR_RETURN(cursor.key, ScanCursor::Decode(text.substr(kHeaderBytes, place_bytes), kind));
  cursor.left = {U32At(text, 0), cursor.key.primary_key};
  cursor.right = {U32At(text, 4), text.substr(kHeaderBytes + place_bytes)};
  cursor.key.primary_key = {};
  return cursor;
}

}  // namespace cairn
