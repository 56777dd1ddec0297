#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/extractor.h"
#include "cairn/index_spec.h"
#include "engine/extract/json_row.h"
#include "index/keys/key_encoding.h"

namespace cairn {

// What became of reading a part's single value in a row.
enum class PartRead : uint8_t { kFound, kMissing, kUnreadable };

// One part of a spec, compiled: finds and reads its value in a row. Immutable and thread-safe.
struct RowPart {
  // The part that messages call `name`: "part 2". InvalidArgument for one that no row could
  // satisfy, NotFound for an extractor that is not registered.
  static absl::StatusOr<RowPart> Compile(const KeyPart& part, std::string_view name,
                                         const PartLayout& layout);

  // Whether a row has one value at most, which ReadBytes and ReadNumber read.
  bool single_valued() const { return pointer == nullptr && custom == nullptr; }

  // The part's bytes in the row; unreadable where the row ends within them.
  PartRead ReadBytes(const RowView& row, std::string_view* bytes) const;

  // The OrderedBits of a number; unreadable, too, where the part's bytes are not one.
  PartRead ReadNumber(const RowView& row, uint64_t* ordered) const;

  // The value of a part of either kind; null where it is missing. Text points into the row.
  PartRead ReadValue(const RowView& row, DataValue* value) const;

  // Why a row was unreadable: InvalidArgument, with what was expected and found.
  absl::Status Unreadable(const RowView& row) const;

  // `status` with this part's title before its message.
  absl::Status Here(const absl::Status& status) const;

  KeySource source;
  PartLayout layout;
  Endian endian = Endian::kBig;
  size_t width = 0;  // of a number in bytes, else 0
  std::shared_ptr<const JsonPointer> pointer;
  std::shared_ptr<const KeyExtractor> custom;
  std::string title;  // "part 2 (value[8:4]:u32le)"

 private:
  PartRead ReadRange(std::string_view row, std::string_view* bytes) const;
  PartRead ReadElsewhere(const RowView& row, std::string_view* bytes) const;
  PartRead ReadDecimal(std::string_view text, uint64_t* ordered) const;
  uint64_t LoadNumber(const char* bytes) const;
};

// Inline, as a byte range is read in about the time of a call; GCC finds them too large for it.

ABSL_ATTRIBUTE_ALWAYS_INLINE inline PartRead RowPart::ReadRange(std::string_view row,
                                                                std::string_view* bytes) const {
  // What starts at the end is there, and empty, where it has no length of its own.
  if (source.offset > row.size()) return PartRead::kMissing;
  row.remove_prefix(source.offset);
  if (source.length.has_value()) {
    if (row.empty()) return PartRead::kMissing;
    if (*source.length > row.size()) return PartRead::kUnreadable;
    row = std::string_view(row.data(), *source.length);
  }
  *bytes = row;
  return PartRead::kFound;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline PartRead RowPart::ReadBytes(const RowView& row,
                                                                std::string_view* bytes) const {
  if (source.kind == KeySource::Kind::kValue) return ReadRange(row.value, bytes);
  if (source.kind == KeySource::Kind::kKey) return ReadRange(row.primary_key, bytes);
  return ReadElsewhere(row, bytes);
}

inline uint64_t RowPart::LoadNumber(const char* bytes) const {
  switch (width) {
    case 1:
      return static_cast<unsigned char>(*bytes);
    case 2: {
      uint16_t number;
      std::memcpy(&number, bytes, sizeof(number));
      return endian == Endian::kLittle ? number : __builtin_bswap16(number);
    }
    case 4: {
      uint32_t number;
      std::memcpy(&number, bytes, sizeof(number));
      return endian == Endian::kLittle ? number : __builtin_bswap32(number);
    }
    default: {
      uint64_t number;
      std::memcpy(&number, bytes, sizeof(number));
      return endian == Endian::kLittle ? number : __builtin_bswap64(number);
    }
  }
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline PartRead RowPart::ReadNumber(const RowView& row,
                                                                 uint64_t* ordered) const {
  std::string_view bytes;
  if (const PartRead read = ReadBytes(row, &bytes); read != PartRead::kFound) return read;
  if (source.kind == KeySource::Kind::kField) return ReadDecimal(bytes, ordered);
  if (bytes.size() != width) return PartRead::kUnreadable;
  *ordered = OrderedBits(LoadNumber(bytes.data()), layout.type);
  return PartRead::kFound;
}

}  // namespace cairn
