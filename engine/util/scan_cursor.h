#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// The position after one entry, identified by its key and its row's primary key, which a rebuild
// preserves. Encoded as an opaque string (FindResult::cursors).
//
// Bytes: the kind (1), the key's length (4, little-endian), the key (u32 and u64 big-endian), the
// primary key.
struct ScanCursor {
  PhysicalType kind = PhysicalType::kU32;
  uint64_t number = 0;     // the key, if it is a number
  std::string_view bytes;  // the key, if it is a byte string
  std::string_view primary_key;

  std::string Encode() const;
  // The views point into `text`. InvalidArgument: `text` is not a cursor over keys of `kind`.
  static absl::StatusOr<ScanCursor> Decode(std::string_view text, PhysicalType kind);
  // InvalidArgument: the key is outside of range i, so the cursor is one of another range.
  absl::Status CheckWithin(const RangeBatch& ranges, size_t i) const;
};

}  // namespace cairn
