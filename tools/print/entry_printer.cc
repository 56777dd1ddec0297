#include "tools/print/entry_printer.h"

#include <utility>
#include <vector>

#include "index/machine/status_macros.h"
#include "tools/print/aligned_lines.h"
#include "tools/text/readable.h"
#include "tools/text/value_text.h"

namespace cairn::tools {
namespace {

// One entry per line: secondary key, primary key[, columns][, value], in the codec's notation.
class TsvPrinter : public EntryPrinter {
 public:
  TsvPrinter(const KeyCodec& codec, Output* output) : codec_(codec), output_(output) {}

  absl::Status Print(const PrintedEntry& entry) override {
    ASSIGN_OR_RETURN(std::string line, codec_.Format(entry.keys, entry.i));
    line.push_back('\t');
    AppendEscaped(entry.primary_key, &line);
    for (const DataValue& value : entry.columns) {
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

// One object per line: {"key":…,"primary_key":…[,"columns":{…}][,"value":…]}; a composite key is an
// array. Bytes that are not UTF-8 are {"hex":"…"}; nan, inf and -inf are strings, and other floats
// have a point or an exponent.
class JsonPrinter : public EntryPrinter {
 public:
  JsonPrinter(const KeyCodec& codec, absl::Span<const std::string> columns,
              const EntryJsonNames& names, Output* output)
      : codec_(codec), columns_(columns), names_(names), output_(output) {}

  absl::Status Print(const PrintedEntry& entry) override {
    RETURN_IF_ERROR(codec_.Decode(entry.keys, entry.i, &parts_, &scratch_));
    line_ = "{\"key\":";
    if (parts_.size() > 1) line_ += '[';
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (part != 0) line_ += ',';
      AppendJsonValue(parts_[part], &line_);
    }
    if (parts_.size() > 1) line_ += ']';
    line_.append(",\"").append(names_.primary_key).append("\":");
    AppendJsonValue(entry.primary_key, &line_);
    for (size_t c = 0; c < columns_.size(); ++c) {
      line_ += c == names_.beside ? ",\"columns\":{" : ",";
      AppendJsonValue(std::string_view(columns_[c]), &line_);
      line_ += ':';
      AppendJsonValue(entry.columns[c], &line_);
    }
    if (columns_.size() > names_.beside) line_ += '}';
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
  const EntryJsonNames names_;
  Output* const output_;
  std::vector<DataValue> parts_;
  std::string scratch_;
  std::string line_;
};

// Human-readable.
class TextPrinter : public EntryPrinter {
 public:
  TextPrinter(const KeyCodec& codec, absl::Span<const std::string> columns, bool with_values,
              Output* output)
      : codec_(codec), output_(output), lines_(output) {
    std::vector<std::string> headline = {"key", "primary key"};
    headline.insert(headline.end(), columns.begin(), columns.end());
    if (with_values) headline.push_back("value");
    lines_.Add(std::move(headline));
  }

  absl::Status Print(const PrintedEntry& entry) override {
    RETURN_IF_ERROR(codec_.Decode(entry.keys, entry.i, &parts_, &scratch_));
    std::vector<std::string> line(2);
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (part != 0) line[0] += ',';
      AppendReadableValue(parts_[part], &line[0]);
    }
    AppendReadable(entry.primary_key, &line[1]);
    for (const DataValue& value : entry.columns) AppendReadableValue(value, &line.emplace_back());
    if (entry.value.has_value()) AppendReadable(*entry.value, &line.emplace_back());
    lines_.Add(std::move(line));
    return output_->status();
  }

  void End() override { lines_.End(); }

 private:
  const KeyCodec& codec_;
  Output* const output_;
  AlignedLines lines_;
  std::vector<DataValue> parts_;
  std::string scratch_;
};

}  // namespace

std::unique_ptr<EntryPrinter> EntryPrinter::Make(const std::string& format, const KeyCodec& codec,
                                                 absl::Span<const std::string> columns,
                                                 bool with_values, Output* output,
                                                 const EntryJsonNames& json) {
  if (format == "tsv") return std::make_unique<TsvPrinter>(codec, output);
  if (format == "json") return std::make_unique<JsonPrinter>(codec, columns, json, output);
  return std::make_unique<TextPrinter>(codec, columns, with_values, output);
}

}  // namespace cairn::tools
