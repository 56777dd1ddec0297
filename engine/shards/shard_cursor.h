#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/util/scan_cursor.h"

namespace cairn {

// The position after one entry of an index sharded by source: the shard's number (4 bytes,
// little-endian), then a ScanCursor. For an index sharded by key range, a cursor is a plain
// ScanCursor, which stays valid however the next generation is cut.
struct SourceCursor {
  uint32_t shard = 0;
  ScanCursor entry;

  std::string Encode() const;
  // Errors: those of ScanCursor::Decode; InvalidArgument if the shard is not below `shards`.
  static absl::StatusOr<SourceCursor> Decode(std::string_view text, PhysicalType kind,
                                             size_t shards);
};

}  // namespace cairn
