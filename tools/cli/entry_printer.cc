#include "tools/cli/entry_printer.h"
#include "tools/text/readable.h"

#include <algorithm>
#include <vector>

#include "index/machine/status_macros.h"
#include "tools/text/value_text.h"

namespace cairn::tools {
namespace {

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
      AppendTsvValue(value, &line);
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
      AppendJsonValue(parts_[part], &line_);
    }
    if (parts_.size() > 1) line_ += ']';
    line_ += ",\"primary_key\":";
    AppendJsonValue(entry.primary_key, &line_);
    for (size_t c = 0; c < columns_.size(); ++c) {
      line_ += c == 0 ? ",\"columns\":{" : ",";
      AppendJsonValue(std::string_view(columns_[c]), &line_);
      line_ += ':';
      AppendJsonValue(entry.columns[c], &line_);
    }
    if (!columns_.empty()) line_ += '}';
    if (entry.value.has_value()) {
      line_ += ",\"value\":";
      AppendJsonValue(*entry.value, &line_);
    }
    line_ += "}\n";
    output_->Write(line_);
    return output_->status();
  }

 private:
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
      AppendReadableValue(parts_[part], &line[0]);
    }
    AppendReadable(entry.primary_key, &line[1]);
    for (const KeyValue& value : entry.columns) AppendReadableValue(value, &line.emplace_back());
    if (entry.value.has_value()) AppendReadable(*entry.value, &line.emplace_back());
    lines_.push_back(std::move(line));
    if (aligned_ || lines_.size() > kLinesToAlign) WriteLines();
    return output_->status();
  }

  void End() override { WriteLines(); }

 private:
  static constexpr size_t kLinesToAlign = 200;

  using Line = std::vector<std::string>;  // cells

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
