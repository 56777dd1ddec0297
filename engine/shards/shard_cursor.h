#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/util/scan_cursor.h"

namespace cairn {

// The place behind one entry of an index whose shards are by source: the shard's number (4 bytes,
// little-endian), then its ScanCursor. By key range a cursor is a plain ScanCursor, which stays
// good however the next generation is cut.
struct SourceCursor {
  uint32_t shard = 0;
  ScanCursor entry;

  std::string Encode() const;
  // As ScanCursor::Decode; InvalidArgument for a shard that is not below `shards`, too.
  static absl::StatusOr<SourceCursor> Decode(std::string_view text, PhysicalType kind,
                                             size_t shards);
};

}  // namespace cairn
