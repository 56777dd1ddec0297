#include "tools/report/words.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/key_codec.h"
#include "index/machine/utf8.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

// Three digits and no trailing zeros after the point.
std::string ThreeDigits(double number) {
  const int decimals = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  std::string text = absl::StrFormat("%.*f", decimals, number);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

// Whether a UTF-8 character is not allowed in XML, or changes the direction of later text.
bool IsUnwanted(std::string_view character) {
  static constexpr std::string_view kUnwanted[] = {
      "\u061c", "\u200e", "\u200f", "\u202a",       "\u202b",      "\u202c",
      "\u202d", "\u202e", "\u2028", "\u2029",       "\u2066",      "\u2067",
      "\u2068", "\u2069", "\ufeff", "\xef\xbf\xbe", "\xef\xbf\xbf"};
  return std::find(std::begin(kUnwanted), std::end(kUnwanted), character) != std::end(kUnwanted);
}

void AppendCharacter(std::string_view character, std::string* text) {
  if (character == "&") {
    text->append("&amp;");
  } else if (character == "<") {
    text->append("&lt;");
  } else if (character == ">") {
    text->append("&gt;");
  } else if (character == "\"") {
    text->append("&quot;");
  } else if (character == "'") {
    text->append("&#39;");
  } else if (IsUnwanted(character)) {
    for (const char byte : character) {
      absl::StrAppendFormat(text, "\\x%02x", static_cast<unsigned char>(byte));
    }
  } else {
    AppendReadable(character, text);
  }
}

}  // namespace

std::string Escape(std::string_view bytes, size_t most) {
  std::string text;
  for (size_t characters = 0; !bytes.empty(); ++characters) {
    if (characters == most) return text + "…";
    const size_t length = std::max<size_t>(Utf8Length(bytes), 1);
    AppendCharacter(bytes.substr(0, length), &text);
    bytes.remove_prefix(length);
  }
  return text;
}

std::string ShortNumber(double number) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < std::size(kUnits); ++unit) number /= 1000;
  return absl::StrCat(ThreeDigits(number), kUnits[unit]);
}

std::string BatchText(uint64_t queries) {
  if (queries < 1000) return absl::StrCat(queries);
  const bool millions = queries >= 999500;
  return absl::StrFormat("%.0f %s", static_cast<double>(queries) / (millions ? 1e6 : 1e3),
                         millions ? "M" : "k");
}

std::string ByteText(double bytes) {
  static constexpr const char* kUnits[] = {" B", " kB", " MB", " GB", " TB", " PB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return absl::StrCat(ThreeDigits(bytes), kUnits[unit]);
}

std::string TimeText(double seconds) {
  if (seconds < 999.5e-9) return absl::StrCat(ThreeDigits(seconds * 1e9), " ns");
  if (seconds < 999.5e-6) return absl::StrCat(ThreeDigits(seconds * 1e6), " µs");
  if (seconds < 999.5e-3) return absl::StrCat(ThreeDigits(seconds * 1e3), " ms");
  return absl::StrCat(ThreeDigits(seconds), " s");
}

std::string PercentText(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "under 0.1%";
  if (percent < 100 && percent > 99.9) return "over 99.9%";
  return absl::StrFormat("%.*f%%", percent < 9.95 && percent != std::floor(percent) ? 1 : 0,
                         percent);
}

std::string PlainNumber(double number, int digits) {
  const double size = std::fabs(number);
  if (size != 0 && (size >= 1e15 || size < 1e-4)) return absl::StrFormat("%.*g", digits, number);
  if (number == std::floor(number)) {
    return absl::StrCat(number < 0 ? "−" : "", WithCommas(static_cast<uint64_t>(size)));
  }
  if (size >= 1000) {
    const std::string whole = WithCommas(static_cast<uint64_t>(size));
    const std::string fraction = absl::StrFormat("%.2f", size - std::floor(size));
    // If it rounds up to the next whole number, that is shown.
    if (fraction[0] != '0') return PlainNumber(std::round(number), digits);
    return absl::StrCat(number < 0 ? "−" : "", whole, fraction.substr(1));
  }
  std::string text = absl::StrFormat("%.*g", digits, size);
  return absl::StrCat(number < 0 ? "−" : "", text);
}

std::string Counted(uint64_t number, absl::string_view one, absl::string_view many) {
  return absl::StrCat(WithCommas(number), " ", number == 1 ? one : many);
}

std::string SourceWords(const KeySource& source) {
  const auto bytes_of = [&](absl::string_view what) {
    if (source.length.has_value()) {
      return absl::StrCat(Counted(*source.length, "byte", "bytes"), " of the ", what,
                          ", from byte ", source.offset, " on");
    }
    return source.offset == 0 ? absl::StrCat("the ", what)
                              : absl::StrCat("the ", what, " from byte ", source.offset, " on");
  };
  switch (source.kind) {
    case KeySource::Kind::kKey:
      return bytes_of("primary key");
    case KeySource::Kind::kValue:
      return bytes_of("value");
    case KeySource::Kind::kField:
      return absl::StrCat("field ", source.field, " of the value, split at “",
                          std::string(1, source.delimiter), "”");
    case KeySource::Kind::kJson:
      return absl::StrCat("“", source.name, "” in the value’s JSON");
    case KeySource::Kind::kColumn:
      return absl::StrCat("column “", source.name, "”");
    case KeySource::Kind::kCustom:
      return absl::StrCat("the result of the extractor “", source.name, "” for the row");
  }
  return "";
}

std::string TypeWords(DataType type) {
  const std::string name(DataTypeName(type));
  if (type == DataType::kText) return "text";
  if (type == DataType::kBytes) return "bytes";
  const std::string bits = name.substr(1);
  if (name[0] == 'f') return absl::StrCat("a ", bits, "-bit floating-point number");
  return name[0] == 'u' ? absl::StrCat("an unsigned ", bits, "-bit number")
                        : absl::StrCat("a signed ", bits, "-bit number");
}

}  // namespace cairn::tools
