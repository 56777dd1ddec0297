#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.h"

namespace cairn {

// The place behind one entry, named by what outlives a rebuild: its key and its row's primary key.
// Travels as an opaque string (FindResult::cursors).
//
// Bytes: the kind (1), the key's length (4, little-endian), the key (u32 and u64 big-endian), the
// primary key.
struct ScanCursor {
  PhysicalType kind = PhysicalType::kU32;
  uint64_t number = 0;     // the key, where it is a number
  std::string_view bytes;  // the key, where it is bytes
  std::string_view primary_key;

  std::string Encode() const;
  // The views point into `text`. InvalidArgument unless it is the encoding of a cursor over keys of
  // `kind`.
  static absl::StatusOr<ScanCursor> Decode(std::string_view text, PhysicalType kind);
};

}  // namespace cairn
