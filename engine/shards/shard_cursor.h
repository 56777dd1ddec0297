#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/util/cursor_tag.h"
#include "engine/util/scan_cursor.h"

namespace cairn {

// The position after one entry of an index sharded by source: the shard's number (4 bytes,
// little-endian), then a ScanCursor. For an index sharded by key range, a cursor is a plain
// ScanCursor, which stays valid however the next generation is cut.
struct SourceCursor {
  uint32_t shard = 0;
  ScanCursor entry;

  // Like ScanCursor's methods. InvalidArgument also if the shard is not below `shards`.
  std::string EncodeFor(const CursorTag& tag) const;
  static absl::StatusOr<SourceCursor> DecodeFor(const CursorTag& tag, const RangeBatch& ranges,
                                                size_t i, size_t shards);
};

}  // namespace cairn
