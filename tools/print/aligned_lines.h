#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/print/output.h"

namespace cairn::tools {

// Prints lines of cells in columns, human-readable. The first lines determine the widths; a longer
// cell in a later line moves that line's other cells to the right.
class AlignedLines {
 public:
  explicit AlignedLines(Output* output) : output_(output) {}

  // All lines must have the same number of cells.
  void Add(std::vector<std::string> cells);
  // Must be called after the last line.
  void End() { WriteLines(); }

 private:
  void WriteLines();

  Output* const output_;
  std::vector<std::vector<std::string>> lines_;  // until the widths are known
  bool aligned_ = false;
  std::vector<size_t> widths_;  // of the cells
};

}  // namespace cairn::tools
