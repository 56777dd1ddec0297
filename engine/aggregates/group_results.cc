#include "engine/aggregates/group_results.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "index/keys/key_encoding.h"
#include "index/keys/key_number.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr char kGroupCursor = 'g';

}  // namespace

absl::Status CheckLeadingParts(const KeyCodec& codec, size_t parts) {
  if (parts >= 1 && parts <= codec.parts().size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("expected groups by 1 to %d leading parts of the key, found %d",
                      codec.parts().size(), parts));
}

std::string PrefixBytes(uint64_t prefix) {
  std::string bytes;
  AppendBigEndian(prefix, sizeof prefix, &bytes);
  return bytes;
}

template <>
absl::StatusOr<uint64_t> PrefixOf<uint64_t>(std::string_view bytes) {
  if (bytes.size() == sizeof(uint64_t)) return ReadBigEndian(bytes);
  return absl::InvalidArgumentError(
      absl::StrFormat("expected a key of %d bytes, found %d", sizeof(uint64_t), bytes.size()));
}
template <>
absl::StatusOr<std::string_view> PrefixOf<std::string_view>(std::string_view bytes) {
  return bytes;
}

std::string GroupCursor(const CursorTag& tag, std::string_view prefix) {
  std::string cursor;
  cursor.reserve(CursorTag::kBytes + 1 + prefix.size());
  tag.AppendTo(&cursor);
  cursor.push_back(kGroupCursor);
  return cursor.append(prefix);
}

absl::StatusOr<std::string_view> ReadGroupCursor(const CursorTag& tag, const RangeBatch& ranges,
                                                 size_t i) {
  ASSIGN_OR_RETURN(const std::string_view group, tag.RemoveFrom(ranges, i));
  return group.substr(1);
}

std::string GroupText(absl::Span<const ColumnValues> parts, size_t group) {
  std::string text = "group ";
  for (const ColumnValues& part : parts) {
    absl::StrAppend(&text, &part == parts.data() ? "" : ",", Described(part.value(group)));
  }
  return text;
}

}  // namespace cairn
