#include "tools/text/value_text.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_format.h"
#include "index/machine/utf8.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

// The shortest decimal that parses to the same double.
std::string Shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

// A null or a number, in the codec's notation.
std::string NullOrNumber(const DataValue& value) {
  if (const auto* const number = std::get_if<uint64_t>(&value)) return std::to_string(*number);
  if (const auto* const integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* const real = std::get_if<double>(&value)) return Shortest(*real);
  return "\\N";
}

void AppendHex(std::string_view bytes, std::string* text) {
  *text += "{\"hex\":\"";
  for (const char c : bytes) *text += absl::StrFormat("%02x", static_cast<unsigned char>(c));
  *text += "\"}";
}

void AppendJsonText(std::string_view bytes, std::string* text) {
  const size_t start = text->size();
  *text += '"';
  for (std::string_view rest = bytes; !rest.empty();) {
    const size_t length = Utf8Length(rest);
    if (length == 0) {
      text->resize(start);
      return AppendHex(bytes, text);
    }
    const char c = rest[0];
    if (c == '"' || c == '\\') {
      text->append(1, '\\').append(1, c);
    } else if (length == 1 && (c < ' ' || c == '\x7f')) {
      *text += absl::StrFormat("\\u%04x", static_cast<unsigned>(c));
    } else {
      text->append(rest.substr(0, length));
    }
    rest.remove_prefix(length);
  }
  *text += '"';
}

}  // namespace

void AppendReadableValue(const DataValue& value, std::string* text) {
  if (const auto* const bytes = std::get_if<std::string_view>(&value)) {
    AppendReadable(*bytes, text);
  } else {
    *text += NullOrNumber(value);
  }
}

void AppendTsvValue(const DataValue& value, std::string* text) {
  if (const auto* const bytes = std::get_if<std::string_view>(&value)) {
    AppendEscaped(*bytes, text);
  } else {
    *text += NullOrNumber(value);
  }
}

void AppendJsonValue(const DataValue& value, std::string* text) {
  const double* const real = std::get_if<double>(&value);
  if (const auto* const bytes = std::get_if<std::string_view>(&value)) {
    AppendJsonText(*bytes, text);
  } else if (std::holds_alternative<std::monostate>(value)) {
    *text += "null";
  } else if (real != nullptr && !std::isfinite(*real)) {
    *text += '"' + NullOrNumber(value) + '"';
  } else {
    const std::string number = NullOrNumber(value);
    *text += number;
    if (real != nullptr && number.find_first_of(".e") == std::string::npos) *text += ".0";
  }
}

}  // namespace cairn::tools
