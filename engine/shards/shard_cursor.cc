#include "engine/shards/shard_cursor.h"

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {

std::string SourceCursor::EncodeFor(const CursorTag& tag) const {
  std::string text;
  tag.AppendTo(&text);
  for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<char>(shard >> shift));
  entry.AppendTo(&text);
  return text;
}

absl::StatusOr<SourceCursor> SourceCursor::DecodeFor(const CursorTag& tag, const RangeBatch& ranges,
                                                     size_t i, size_t shards) {
  ASSIGN_OR_RETURN(const std::string_view position, tag.RemoveFrom(ranges, i));
  SourceCursor cursor;
  if (position.size() < sizeof cursor.shard) {
    return absl::InvalidArgumentError("not a cursor of an index sharded by source");
  }
  for (size_t i = 0; i < sizeof cursor.shard; ++i) {
    cursor.shard |= static_cast<uint32_t>(static_cast<uint8_t>(position[i])) << (8 * i);
  }
  if (cursor.shard >= shards) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the cursor is in shard %d of %d shards", cursor.shard, shards));
  }
  ASSIGN_OR_RETURN(cursor.entry,
                   ScanCursor::Decode(position.substr(sizeof cursor.shard), ranges.kind()));
  return cursor;
}

}  // namespace cairn
