#include "tools/print/table_printer.h"

#include <utility>

#include "tools/text/value_text.h"

namespace cairn::tools {

TablePrinter::TablePrinter(const std::string& format, std::vector<std::string> names,
                           Options options)
    : names_(std::move(names)),
      before_columns_(options.before_columns),
      text_(format == "text"),
      json_(format == "json"),
      lines_(&output_) {
  if (text_) {
    lines_.Add(names_);
  } else if (!json_ && options.tsv_headline) {
    for (size_t i = 0; i < names_.size(); ++i) line_ += (i == 0 ? "" : "\t") + names_[i];
    output_.Write(line_ + "\n");
  }
}

void TablePrinter::AppendJson(absl::Span<const DataValue> values) {
  line_ += '{';
  for (size_t i = 0; i < names_.size(); ++i) {
    if (i != 0) line_ += ',';
    if (i == before_columns_) line_ += "\"columns\":{";
    AppendJsonValue(std::string_view(names_[i]), &line_);
    line_ += ':';
    AppendJsonValue(values[i], &line_);
  }
  if (names_.size() > before_columns_) line_ += '}';
  line_ += '}';
}

absl::Status TablePrinter::Print(absl::Span<const DataValue> values) {
  if (text_) {
    std::vector<std::string> cells(values.size());
    for (size_t i = 0; i < values.size(); ++i) AppendReadableValue(values[i], &cells[i]);
    lines_.Add(std::move(cells));
    return output_.status();
  }
  line_.clear();
  if (json_) {
    AppendJson(values);
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i != 0) line_ += '\t';
      AppendTsvValue(values[i], &line_);
    }
  }
  line_ += '\n';
  output_.Write(line_);
  return output_.status();
}

absl::Status TablePrinter::End() {
  lines_.End();
  return output_.Flush();
}

}  // namespace cairn::tools
