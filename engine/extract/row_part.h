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

// The outcome of reading a part's single value in a row.
enum class PartRead : uint8_t { kFound, kMissing, kUnreadable };

// A compiled part of a spec: finds and reads its value in a row. Immutable and thread-safe.
struct RowPart {
  // Compiles a part that messages call `name`, such as "part 2". InvalidArgument: no row could
  // satisfy it. NotFound: its extractor is not registered.
  static absl::StatusOr<RowPart> Compile(const KeyPart& part, std::string_view name,
                                         const PartLayout& layout);

  // Returns whether a row has at most one value, which ReadBytes and ReadNumber can read.
  bool single_valued() const { return pointer == nullptr && custom == nullptr; }

  // Reads the part's bytes in the row. They are unreadable if the row ends within them.
  PartRead ReadBytes(const RowView& row, std::string_view* bytes) const;

  // Reads the OrderedBits of a number. It is also unreadable if the part's bytes are not a number.
  PartRead ReadNumber(const RowView& row, uint64_t* ordered) const;

  // Reads the value of a part of either kind; null if it is missing. Text points into the row.
  PartRead ReadValue(const RowView& row, DataValue* value) const;

  // Returns why a row was unreadable: InvalidArgument, with the expected and the found value.
  absl::Status Unreadable(const RowView& row) const;

  // Returns `status` with this part's title before its message.
  absl::Status Here(const absl::Status& status) const;

  KeySource source;
  PartLayout layout;
  Endian endian = Endian::kBig;
  size_t width = 0;  // of a number in bytes, otherwise 0
  std::shared_ptr<const JsonPointer> pointer;
  std::shared_ptr<const KeyExtractor> custom;
  std::string title;  // "part 2 (value[8:4]:u32le)"

 private:
  PartRead ReadRange(std::string_view row, std::string_view* bytes) const;
  PartRead ReadElsewhere(const RowView& row, std::string_view* bytes) const;
  PartRead ReadDecimal(std::string_view text, uint64_t* ordered) const;
  uint64_t LoadNumber(const char* bytes) const;
};

// Inline, since reading a byte range takes about the time of a call. GCC would not inline them
// otherwise.

ABSL_ATTRIBUTE_ALWAYS_INLINE inline PartRead RowPart::ReadRange(std::string_view row,
                                                                std::string_view* bytes) const {
  // A range that starts at the end and has no explicit length is present and empty.
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
