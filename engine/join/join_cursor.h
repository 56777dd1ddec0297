#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/util/scan_cursor.h"

namespace cairn {

// A row among those of its key, named by what outlives a merge: an index has the rows of a key in
// this order.
struct JoinRow {
  uint32_t shard = 0;
  std::string_view primary_key;

  auto operator<=>(const JoinRow&) const = default;
};

// The place behind one pair of a join. Travels as an opaque string (JoinResult::cursor).
//
// Bytes, little-endian: the shards of the left and of the right row (4 each), the length of what
// follows (4), a ScanCursor of the key and the left row's primary key, the right row's primary key.
struct JoinCursor {
  ScanCursor key;  // as the left index encodes it; without a primary key
  JoinRow left;
  JoinRow right;

  std::string Encode() const;
  // The views point into `text`. InvalidArgument unless it is the encoding of a cursor over keys of
  // `kind`.
  static absl::StatusOr<JoinCursor> Decode(std::string_view text, PhysicalType kind);
};

}  // namespace cairn
