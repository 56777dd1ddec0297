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

// Writes a table, one line per row: text (aligned and human-readable, under a headline), tsv (for
// scripts) or json (one object per line).
class TablePrinter {
 public:
  struct Options {
    bool tsv_headline = true;
    // In JSON, the values after the first `before_columns` are members of an object "columns".
    size_t before_columns = SIZE_MAX;
  };

  TablePrinter(const std::string& format, std::vector<std::string> names, Options options);

  // One value per name.
  absl::Status Print(absl::Span<const DataValue> values);
  // Must be called after the last row.
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
