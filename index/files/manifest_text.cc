#include "index/files/manifest_text.h"

#include <charconv>

#include "absl/strings/str_format.h"
#include "index/files/checksum.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kChecksumKey = "checksum";
// "checksum ", 16 digits, line end
constexpr size_t kChecksumLineBytes = 9 + 16 + 1;
constexpr std::string_view kHexDigits = "0123456789abcdef";
// Messages quote at most this many bytes of a line.
constexpr size_t kQuotedBytes = 100;

}  // namespace

std::string EscapeLine(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte <= '~' && c != '\\') {
      text += c;
    } else {
      text += "\\x";
      text += kHexDigits[byte >> 4];
      text += kHexDigits[byte & 15];
    }
  }
  return text;
}

bool UnescapeLine(std::string_view text, std::string* value) {
  value->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      *value += text[i];
      continue;
    }
    if (text.size() - i < 4 || text[i + 1] != 'x') return false;
    const size_t high = kHexDigits.find(text[i + 2]);
    const size_t low = kHexDigits.find(text[i + 3]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    *value += static_cast<char>(high << 4 | low);
    i += 3;
  }
  return EscapeLine(*value) == text;
}

bool ParseDecimal(std::string_view text, uint64_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end && (text.size() == 1 || text[0] != '0');
}

bool ParseHex16(std::string_view text, uint64_t* number) {
  if (text.size() != 16) return false;
  *number = 0;
  for (const char c : text) {
    const size_t digit = kHexDigits.find(c);
    if (digit == std::string_view::npos) return false;
    *number = *number << 4 | digit;
  }
  return true;
}

bool ParseVersion(std::string_view text, uint64_t* major_version, uint64_t* minor_version) {
  const size_t dot = text.find('.');
  return dot != std::string_view::npos && ParseDecimal(text.substr(0, dot), major_version) &&
         ParseDecimal(text.substr(dot + 1), minor_version);
}

std::string_view TakeWord(std::string_view* text) {
  const size_t space = text->find(' ');
  const std::string_view word = text->substr(0, space);
  *text = space == std::string_view::npos ? std::string_view() : text->substr(space + 1);
  return word;
}

bool TakeLine(std::string_view* text, std::string_view* line) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return false;
  *line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return true;
}

void AppendChecksumLine(std::string* text) {
  absl::StrAppendFormat(text, "%s %016x\n", kChecksumKey, Checksum(text->data(), text->size()));
}

absl::Status TakeChecksumLine(std::string_view text, std::string_view path, uint64_t most,
                              std::string_view* body) {
  if (text.size() > most || text.size() < kChecksumLineBytes) {
    return absl::DataLossError(
        absl::StrFormat("manifest '%s' is damaged: it has %d bytes, expected %d to %d", path,
                        text.size(), kChecksumLineBytes, most));
  }
  *body = text.substr(0, text.size() - kChecksumLineBytes);
  std::string_view line = text.substr(body->size());
  uint64_t found = 0;
  if (line.back() != '\n' || (line.remove_suffix(1), TakeWord(&line)) != kChecksumKey ||
      !ParseHex16(line, &found)) {
    return absl::DataLossError(absl::StrFormat(
        "manifest '%s' is damaged: expected a checksum in its last line, at offset %d", path,
        body->size()));
  }
  const uint64_t expected = Checksum(body->data(), body->size());
  if (found != expected) {
    return absl::DataLossError(
        absl::StrFormat("manifest '%s' is damaged: its checksum, at offset %d, is %016x, "
                        "expected %016x",
                        path, body->size(), found, expected));
  }
  return absl::OkStatus();
}

absl::Status DamagedLine(std::string_view path, size_t line, std::string_view what) {
  return absl::DataLossError(
      absl::StrFormat("manifest '%s' is damaged in line %d: %s", path, line, what));
}

absl::Status DamagedLine(std::string_view path, size_t line, std::string_view key,
                         std::string_view value) {
  return DamagedLine(path, line,
                     absl::StrFormat("'%s %s'", EscapeLine(key.substr(0, kQuotedBytes)),
                                     EscapeLine(value.substr(0, kQuotedBytes))));
}

absl::Status ReadManifest(
    std::string_view text, std::string_view path, const ManifestFormat& format,
    absl::FunctionRef<ManifestLine(std::string_view key, std::string_view value)> read,
    absl::FunctionRef<absl::Status()> check,
    absl::FunctionRef<absl::StatusOr<std::string>()> write) {
  std::string_view body;
  RETURN_IF_ERROR(TakeChecksumLine(text, path, format.max_bytes, &body));
  uint64_t major_version = 0, minor_version = 0;
  for (size_t number = 1; !body.empty(); ++number) {
    std::string_view value;
    if (!TakeLine(&body, &value)) return DamagedLine(path, number, "the line has no end");
    const std::string_view key = TakeWord(&value);
    if (number == 1) {
      if (key != format.key || !ParseVersion(value, &major_version, &minor_version)) {
        return DamagedLine(path, number,
                           absl::StrFormat("expected '%s' and a format version", format.key));
      }
      if (major_version != format.major_version) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "manifest '%s' is of format version %d.%d; this build reads versions %d.x: %s", path,
            major_version, minor_version, format.major_version,
            major_version < format.major_version ? "rebuild the index" : "a newer one wrote it"));
      }
      continue;
    }
    const ManifestLine line = read(key, value);
    const bool pass_over = minor_version > format.minor_version;
    if (line == ManifestLine::kMalformed || (line == ManifestLine::kUnknownKey && !pass_over)) {
      return DamagedLine(path, number, key, value);
    }
  }
  if (const absl::Status s = check(); !s.ok()) {
    return absl::DataLossError(absl::StrFormat("manifest '%s' is damaged: %s", path, s.message()));
  }
  if (minor_version <= format.minor_version) {
    const absl::StatusOr<std::string> canonical = write();
    if (!canonical.ok() || *canonical != text) {
      return absl::DataLossError(
          absl::StrFormat("manifest '%s' is damaged: its lines are not in canonical form", path));
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
