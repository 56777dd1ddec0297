#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/util/cursor_tag.h"

namespace cairn {

// The position after one entry, identified by its key and its row's primary key, which a rebuild
// preserves.
//
// Bytes: the kind (1), the key's length (4, little-endian), the key (u32 and u64 big-endian), the
// primary key.
struct ScanCursor {
  PhysicalType kind = PhysicalType::kU32;
  uint64_t number = 0;     // the key, if it is a number
  std::string_view bytes;  // the key, if it is a byte string
  std::string_view primary_key;

  // The position after an entry with key i of `keys`. The views point into the arguments.
  static ScanCursor After(const EncodedKeys& keys, size_t i, std::string_view primary_key);
  // Returns the key, which must be of this type.
  template <typename Key>
  Key key() const {
    if constexpr (std::is_same_v<Key, std::string_view>) {
      return bytes;
    } else {
      return static_cast<Key>(number);
    }
  }

  std::string Encode() const;
  void AppendTo(std::string* text) const;
  // The views point into `text`. InvalidArgument: `text` is not a cursor over keys of `kind`.
  static absl::StatusOr<ScanCursor> Decode(std::string_view text, PhysicalType kind);

  // Write and read the cursor of a range (FindResult::cursors), which has a tag. Errors:
  // InvalidArgument if the cursor of range i does not have it.
  std::string EncodeFor(const CursorTag& tag) const;
  static absl::StatusOr<ScanCursor> DecodeFor(const CursorTag& tag, const RangeBatch& ranges,
                                              size_t i);
};

}  // namespace cairn
