// Human-readable keys: KeyCodec::Parse, ParsePrefix and Format.
#include <string>

#include "absl/strings/str_format.h"
#include "cairn/key_codec.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_number.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// The parts of `text`, separated by commas if the key is composite.
std::vector<std::string_view> SplitParts(std::string_view text, bool composite) {
  std::vector<std::string_view> parts;
  while (composite) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos) break;
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(text);
  return parts;
}

absl::Status Unescape(std::string_view text, std::string* bytes) {
  while (!text.empty()) {
    const size_t backslash = text.find('\\');
    bytes->append(text.substr(0, backslash));
    if (backslash == std::string_view::npos) break;
    text.remove_prefix(backslash);
    char byte;
    if (text.size() < 2 || text[1] != 'x' || !ReadHexEscape(text.substr(2), &byte)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("expected \\xHH, or \\N alone, found %s", Quoted(text.substr(0, 4))));
    }
    bytes->push_back(byte);
    text.remove_prefix(4);
  }
  return absl::OkStatus();
}

// Parses each part into a value. Text is unescaped into `scratch`, which has room for all of it.
absl::Status ParseParts(const KeyCodec& codec, absl::Span<const std::string_view> parts,
                        std::vector<DataValue>* values, std::string* scratch) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const DataType type = codec.parts()[i];
    DataValue value;
    absl::Status status;
    if (parts[i] == "\\N") {
      value = std::monostate();
    } else if (FixedWidth(type) != 0) {
      status = ParseNumber(parts[i], type, &value);
    } else {
      const size_t start = scratch->size();
      status = Unescape(parts[i], scratch);
      value = std::string_view(*scratch).substr(start);
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("part %d (%s): %s", i + 1, DataTypeName(type), status.message()));
    }
    values->push_back(value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status KeyCodec::Parse(std::string_view text, EncodedKeys* keys) const try {
  const std::vector<std::string_view> parts = SplitParts(text, parts_.size() > 1);
  if (parts.size() != parts_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected %d parts separated by commas, found %d in %s", parts_.size(),
                        parts.size(), Quoted(text)));
  }
  std::vector<DataValue> values;
  std::string scratch;
  scratch.reserve(text.size());
  absl::Status status = ParseParts(*this, parts, &values, &scratch);
  return status.ok() ? Append(values, keys) : status;
} catch (...) {
  return StatusOfException("reading a key");
}

absl::Status KeyCodec::ParsePrefix(std::string_view text, EncodedKeys* lower, EncodedKeys* upper,
                                   bool* upper_open) const try {
  const bool composite = parts_.size() > 1;
  const bool closed = composite && !text.empty() && text.back() == ',';
  if (closed) text.remove_suffix(1);
  const std::vector<std::string_view> parts = SplitParts(text, composite);
  if (parts.size() > parts_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected at most %d parts separated by commas, found %d in %s",
                        parts_.size(), parts.size(), Quoted(text)));
  }
  std::vector<DataValue> values;
  std::string scratch;
  scratch.reserve(text.size());
  RETURN_IF_ERROR(ParseParts(*this, parts, &values, &scratch));
  const bool last_is_prefix = !closed && std::holds_alternative<std::string_view>(values.back());
  return AppendPrefixRange(values, last_is_prefix, lower, upper, upper_open);
} catch (...) {
  return StatusOfException("reading a prefix");
}

absl::StatusOr<std::string> KeyCodec::Format(const EncodedKeys& keys, size_t i) const try {
  std::vector<DataValue> values;
  std::string scratch;
  RETURN_IF_ERROR(Decode(keys, i, &values, &scratch));
  std::string text;
  for (size_t part = 0; part < values.size(); ++part) {
    if (part != 0) text.push_back(',');
    if (std::holds_alternative<std::monostate>(values[part])) {
      text.append("\\N");
    } else if (FixedWidth(parts_[part]) != 0) {
      AppendNumber(values[part], parts_[part], &text);
    } else {
      AppendEscaped(std::get<std::string_view>(values[part]),
                    parts_.size() > 1 ? Comma::kEscaped : Comma::kPlain, &text);
    }
  }
  return text;
} catch (...) {
  return StatusOfException("writing a key");
}

}  // namespace cairn
