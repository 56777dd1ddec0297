#include "engine/util/cursor_tag.h"

#include <cstdint>

#include "absl/strings/str_format.h"
#include "index/files/checksum.h"

namespace cairn {
namespace {

std::string CursorTag(std::string_view question) {
  const uint64_t checksum = Checksum(question.data(), question.size());
  std::string tag;
  for (int shift = 0; shift < 64; shift += 8) tag.push_back(static_cast<char>(checksum >> shift));
  return tag;
}

}  // namespace

std::string TagCursor(std::string_view question, std::string_view cursor) {
  return CursorTag(question).append(cursor);
}

absl::StatusOr<std::string_view> UntagCursor(std::string_view question, std::string_view tagged,
                                             std::string_view option) {
  const std::string tag = CursorTag(question);
  if (tagged.size() > tag.size() && tagged.substr(0, tag.size()) == tag) {
    return tagged.substr(tag.size());
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: expected a cursor of the same query, found something else", option));
}

}  // namespace cairn
