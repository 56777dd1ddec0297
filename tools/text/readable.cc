#include "tools/text/readable.h"

#include "absl/strings/str_format.h"
#include "index/machine/utf8.h"

namespace cairn::tools {
namespace {

void AppendHex(char c, std::string* text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(c);
  text->append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
}

}  // namespace

void AppendEscaped(std::string_view bytes, std::string* text) {
  for (const char c : bytes) {
    if (c >= '!' && c <= '~' && c != '\\') {
      text->push_back(c);
    } else {
      AppendHex(c, text);
    }
  }
}

void AppendReadable(std::string_view bytes, std::string* text) {
  while (!bytes.empty()) {
    const size_t length = Utf8Length(bytes);
    // U+0080 to U+009F are also control characters.
    const bool control =
        length == 1 ? bytes[0] < ' ' || bytes[0] == '\x7f'
                    : length == 2 && bytes[0] == '\xc2' && static_cast<uint8_t>(bytes[1]) < 0xa0;
    if (length == 0 || control || bytes[0] == '\\') {
      AppendHex(bytes[0], text);
      bytes.remove_prefix(1);
    } else {
      text->append(bytes.substr(0, length));
      bytes.remove_prefix(length);
    }
  }
}

std::string WithCommas(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string WithUnit(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit < 6; ++unit) size /= 1024;
  return unit == 0 ? absl::StrFormat("%d B", bytes)
                   : absl::StrFormat("%.1f %s", size, kUnits[unit]);
}

}  // namespace cairn::tools
