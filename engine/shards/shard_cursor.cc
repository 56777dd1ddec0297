#include "engine/shards/shard_cursor.h"

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {

std::string SourceCursor::Encode() const {
  std::string text;
  for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<char>(shard >> shift));
  return text + entry.Encode();
}

absl::StatusOr<SourceCursor> SourceCursor::Decode(std::string_view text, PhysicalType kind,
                                                  size_t shards) {
  SourceCursor cursor;
  if (text.size() < sizeof cursor.shard) {
    return absl::InvalidArgumentError("not a cursor of an index sharded by source");
  }
  for (size_t i = 0; i < sizeof cursor.shard; ++i) {
    cursor.shard |= static_cast<uint32_t>(static_cast<uint8_t>(text[i])) << (8 * i);
  }
  if (cursor.shard >= shards) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the cursor is in shard %d of %d shards", cursor.shard, shards));
  }
  ASSIGN_OR_RETURN(cursor.entry, ScanCursor::Decode(text.substr(sizeof cursor.shard), kind));
  return cursor;
}

}  // namespace cairn
