#include "tools/cli/entry_printer.h"
#include "tools/text/readable.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn::tools {
namespace {

// The shortest decimal that reads back as the same double.
std::string Shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

// What is no text, as the codec writes it.
std::string NullOrNumber(const KeyValue& value) {
  if (const auto* const number = std::get_if<uint64_t>(&value)) return std::to_string(*number);
  if (const auto* const integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* const real = std::get_if<double>(&value)) return Shortest(*real);
  return "\\N";
}

// One entry a line: secondary key, primary key[, columns][, value], in the codec's notation.
class TsvPrinter : public EntryPrinter {
 public:
  TsvPrinter(const KeyCodec& codec, Output* output) : codec_(codec), output_(output) {}

  absl::Status Print(const PrintedEntry& entry) override {
    ASSIGN_OR_RETURN(std::string line, codec_.Format(entry.keys, entry.i));
    line.push_back('\t');
    AppendEscaped(entry.primary_key, &line);
    for (const KeyValue& value : entry.columns) {
      line.push_back('\t');
      if (const auto* const text = std::get_if<std::string_view>(&value)) {
        AppendEscaped(*text, &line);
      } else {
        line += NullOrNumber(value);
      }
    }
    if (entry.value.has_value()) {
      line.push_back('\t');
      AppendEscaped(*entry.value, &line);
    }
    line.push_back('\n');
    output_->Write(line);
    return output_->status();
  }

 private:
  const KeyCodec& codec_;
  Output* const output_;
};

// One object a line: {"key":…,"primary_key":…[,"columns":{…}][,"value":…]}; a composite key is an
// array. Bytes that are not UTF-8 are {"hex":"…"}; nan, inf and -inf are strings.
class JsonPrinter : public EntryPrinter {
 public:
  JsonPrinter(const KeyCodec& codec, absl::Span<const std::string> columns, Output* output)
      : codec_(codec), columns_(columns), output_(output) {}

  absl::Status Print(const PrintedEntry& entry) override {
    RETURN_IF_ERROR(codec_.Decode(entry.keys, entry.i, &parts_, &scratch_));
    line_ = "{\"key\":";
    if (parts_.size() > 1) line_ += '[';
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (part != 0) line_ += ',';
      AppendValue(parts_[part]);
    }
    if (parts_.size() > 1) line_ += ']';
    line_ += ",\"primary_key\":";
    AppendBytes(entry.primary_key);
    for (size_t c = 0; c < columns_.size(); ++c) {
      line_ += c == 0 ? ",\"columns\":{" : ",";
      AppendBytes(columns_[c]);
      line_ += ':';
      AppendValue(entry.columns[c]);
    }
    if (!columns_.empty()) line_ += '}';
    if (entry.value.has_value()) {
      line_ += ",\"value\":";
      AppendBytes(*entry.value);
    }
    line_ += "}\n";
    output_->Write(line_);
    return output_->status();
  }

 private:
  void AppendValue(const KeyValue& value) {
    if (std::holds_alternative<std::monostate>(value)) {
      line_ += "null";
    } else if (const auto* number = std::get_if<uint64_t>(&value)) {
      line_ += std::to_string(*number);
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      line_ += std::to_string(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      line_ += std::isfinite(*real) ? Shortest(*real) : '"' + Shortest(*real) + '"';
    } else {
      AppendBytes(std::get<std::string_view>(value));
    }
  }

  void AppendBytes(std::string_view bytes) {
    const size_t start = line_.size();
    line_ += '"';
    for (std::string_view rest = bytes; !rest.empty();) {
      const size_t length = Utf8Length(rest);
      if (length == 0) {
        line_.resize(start);
        return AppendHex(bytes);
      }
      const char c = rest[0];
      if (c == '"' || c == '\\') {
        line_.append(1, '\\').append(1, c);
      } else if (length == 1 && (c < ' ' || c == '\x7f')) {
        line_ += absl::StrFormat("\\u%04x", static_cast<unsigned>(c));
      } else {
        line_.append(rest.substr(0, length));
      }
      rest.remove_prefix(length);
    }
    line_ += '"';
  }

  void AppendHex(std::string_view bytes) {
    line_ += "{\"hex\":\"";
    for (const char c : bytes) line_ += absl::StrFormat("%02x", static_cast<unsigned char>(c));
    line_ += "\"}";
  }

  const KeyCodec& codec_;
  const absl::Span<const std::string> columns_;
  Output* const output_;
  std::vector<KeyValue> parts_;
  std::string scratch_;
  std::string line_;
};

// Columns under a headline. Their widths are those of the first lines; a longer cell that comes
// later moves its line's other cells to the right.
class TextPrinter : public EntryPrinter {
 public:
  TextPrinter(const KeyCodec& codec, absl::Span<const std::string> columns, bool with_values,
              Output* output)
      : codec_(codec), output_(output) {
    Line headline = {"key", "primary key"};
    headline.insert(headline.end(), columns.begin(), columns.end());
    if (with_values) headline.push_back("value");
    lines_.push_back(std::move(headline));
  }

  absl::Status Print(const PrintedEntry& entry) override {
    RETURN_IF_ERROR(codec_.Decode(entry.keys, entry.i, &parts_, &scratch_));
    Line line(2);
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (part != 0) line[0] += ',';
      AppendValue(parts_[part], &line[0]);
    }
    AppendReadable(entry.primary_key, &line[1]);
    for (const KeyValue& value : entry.columns) AppendValue(value, &line.emplace_back());
    if (entry.value.has_value()) AppendReadable(*entry.value, &line.emplace_back());
    lines_.push_back(std::move(line));
    if (aligned_ || lines_.size() > kLinesToAlign) WriteLines();
    return output_->status();
  }

  void End() override { WriteLines(); }

 private:
  static constexpr size_t kLinesToAlign = 200;

  using Line = std::vector<std::string>;  // cells

  static void AppendValue(const KeyValue& value, std::string* text) {
    if (const auto* const bytes = std::get_if<std::string_view>(&value)) {
      AppendReadable(*bytes, text);
    } else {
      *text += NullOrNumber(value);
    }
  }

  // Characters of UTF-8, as far as a terminal gives each one column.
  static size_t Columns(const std::string& text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }

  static void AppendCell(const std::string& cell, size_t width, std::string* line) {
    line->append(cell);
    line->append(width - std::min(width, Columns(cell)) + 2, ' ');
  }

  void WriteLines() {
    if (!aligned_) {
      widths_.assign(lines_.front().size(), 0);
      for (const Line& line : lines_) {
        for (size_t c = 0; c < line.size(); ++c) {
          widths_[c] = std::max(widths_[c], Columns(line[c]));
        }
      }
      aligned_ = true;
    }
    for (const Line& line : lines_) {
      std::string text;
      for (size_t c = 0; c + 1 < line.size(); ++c) AppendCell(line[c], widths_[c], &text);
      text += line.back();
      text.erase(text.find_last_not_of(' ') + 1);
      text += '\n';
      output_->Write(text);
    }
    lines_.clear();
  }

  const KeyCodec& codec_;
  Output* const output_;
  std::vector<Line> lines_;  // that wait for the widths
  bool aligned_ = false;
  std::vector<size_t> widths_;  // of the cells
  std::vector<KeyValue> parts_;
  std::string scratch_;
};

}  // namespace

std::unique_ptr<EntryPrinter> EntryPrinter::Make(const std::string& format, const KeyCodec& codec,
                                                 absl::Span<const std::string> columns,
                                                 bool with_values, Output* output) {
  if (format == "tsv") return std::make_unique<TsvPrinter>(codec, output);
  if (format == "json") return std::make_unique<JsonPrinter>(codec, columns, output);
  return std::make_unique<TextPrinter>(codec, columns, with_values, output);
}

}  // namespace cairn::tools
