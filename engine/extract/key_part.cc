#include "engine/extract/key_part.h"

#include <limits>

#include "absl/strings/str_format.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_number.h"

namespace cairn {
namespace {

std::string SourceText(const KeySource& source) {
  std::string text;
  switch (source.kind) {
    case KeySource::Kind::kKey:
    case KeySource::Kind::kValue:
      text = source.kind == KeySource::Kind::kKey ? "key" : "value";
      if (source.offset != 0 || source.length.has_value()) {
        absl::StrAppendFormat(&text, "[%d:", source.offset);
        if (source.length.has_value()) absl::StrAppendFormat(&text, "%d", *source.length);
        text += ']';
      }
      return text;
    case KeySource::Kind::kField:
      return absl::StrFormat("value.field(%s,%d)",
                             QuotedString(std::string_view(&source.delimiter, 1)), source.field);
    case KeySource::Kind::kJson:
      return absl::StrFormat("value.json(%s)", QuotedString(source.name));
    case KeySource::Kind::kColumn:
      return absl::StrFormat("column(%s)", QuotedString(source.name));
    case KeySource::Kind::kCustom:
      return absl::StrFormat("custom(%s)", QuotedString(source.name));
  }
  return text;
}

absl::Status CheckRange(const KeyPart& part) {
  const KeySource& source = part.source;
  if (!source.length.has_value()) return absl::OkStatus();
  const size_t width = FixedWidth(part.type);
  if (width != 0 && *source.length != width) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected a range of %d bytes for %s, found one of %d", width,
                        DataTypeName(part.type), *source.length));
  }
  if (*source.length == 0 ||
      *source.length > std::numeric_limits<uint64_t>::max() - source.offset) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected a range of at least one byte that ends below 2^64, found "
                        "offset %d and length %d",
                        source.offset, *source.length));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRaw(KeySource::Kind kind) {
  return kind == KeySource::Kind::kKey || kind == KeySource::Kind::kValue ||
         kind == KeySource::Kind::kColumn;
}

bool SaysByteOrder(const KeyPart& part) {
  return IsRaw(part.source.kind) && FixedWidth(part.type) > 1;
}

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

absl::Status CheckPart(const KeyPart& part) {
  const KeySource& source = part.source;
  switch (source.kind) {
    case KeySource::Kind::kKey:
    case KeySource::Kind::kValue:
      return CheckRange(part);
    case KeySource::Kind::kField:
    case KeySource::Kind::kColumn:
      break;
    case KeySource::Kind::kJson: {
      std::vector<std::string> tokens;
      return SplitJsonPointer(source.name, &tokens);
    }
    case KeySource::Kind::kCustom:
      if (source.name.empty()) {
        return absl::InvalidArgumentError("expected the name of an extractor, found none");
      }
      break;
  }
  return absl::OkStatus();
}

std::string PartText(const KeyPart& part) {
  std::string text = SourceText(part.source);
  text += ':';
  text += DataTypeName(part.type);
  if (SaysByteOrder(part)) text += part.endian == Endian::kLittle ? "le" : "be";
  return text;
}

std::string QuotedString(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c < ' ' || c > '~') {
      AppendHexEscape(c, &quoted);
    } else {
      if (c == '\'' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  quoted += '\'';
  return quoted;
}

absl::Status SplitJsonPointer(std::string_view pointer, std::vector<std::string>* tokens) {
  if (!pointer.empty() && pointer[0] != '/') {
    return absl::InvalidArgumentError(absl::StrFormat(
        "expected a JSON pointer, '' or one that starts with '/', found %s", Quoted(pointer)));
  }
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens->emplace_back();
    } else if (pointer[i] != '~') {
      tokens->back() += pointer[i];
    } else {
      const char escaped = i + 1 < pointer.size() ? pointer[++i] : '\0';
      if (escaped != '0' && escaped != '1') {
        return absl::InvalidArgumentError(absl::StrFormat(
            "expected 0 or 1 after every '~' of a JSON pointer, found %s", Quoted(pointer)));
      }
      tokens->back() += escaped == '0' ? '~' : '/';
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
