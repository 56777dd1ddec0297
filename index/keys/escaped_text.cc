#include "index/keys/escaped_text.h"

namespace cairn {
namespace {

// The value of a hexadecimal digit, or -1.
int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

void AppendHexEscape(char byte, std::string* text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const unsigned value = static_cast<unsigned char>(byte);
  const char escape[] = {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
  text->append(escape, sizeof(escape));
}

void AppendEscaped(std::string_view bytes, Comma comma, std::string* text) {
  for (const char c : bytes) {
    if (c < '!' || c > '~' || c == '\\' || (c == ',' && comma == Comma::kEscaped)) {
      AppendHexEscape(c, text);
    } else {
      text->push_back(c);
    }
  }
}

std::string EscapeBytes(std::string_view bytes) {
  std::string text;
  AppendEscaped(bytes, Comma::kPlain, &text);
  return text;
}

bool ReadHexEscape(std::string_view digits, char* byte) {
  if (digits.size() < 2) return false;
  const int high = HexValue(digits[0]);
  const int low = HexValue(digits[1]);
  if (high < 0 || low < 0) return false;
  *byte = static_cast<char>(high << 4 | low);
  return true;
}

std::string Quoted(std::string_view text, size_t most) {
  if (text.empty()) return "nothing";
  std::string quoted = "'";
  for (const char c : text.substr(0, most)) {
    if (c >= ' ' && c <= '~') {
      quoted += c;
    } else {
      AppendHexEscape(c, &quoted);
    }
  }
  quoted += text.size() > most ? "...'" : "'";
  return quoted;
}

}  // namespace cairn
