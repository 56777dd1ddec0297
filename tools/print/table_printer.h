#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "tools/print/aligned_lines.h"
#include "tools/print/output.h"

namespace cairn::tools {

// Writes a table, a line a row: text (aligned for people, under a headline), tsv (for scripts) or
// json (an object a line).
class TablePrinter {
 public:
  struct Options {
    bool tsv_headline = true;
    // In JSON, what comes behind so many values is an object of its own, "columns".
    size_t before_columns = SIZE_MAX;
  };

  TablePrinter(const std::string& format, std::vector<std::string> names, Options options);

  // A value for each of the names.
  absl::Status Print(absl::Span<const DataValue> values);
  // After the last row.
  absl::Status End();

 private:
  void AppendJson(absl::Span<const DataValue> values);

  const std::vector<std::string> names_;
  const size_t before_columns_;
  const bool text_, json_;
  Output output_;
  AlignedLines lines_;
  std::string line_;
};

}  // namespace cairn::tools
