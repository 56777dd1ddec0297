#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/print/output.h"

namespace cairn::tools {

// Lines of cells in columns, for people. Their widths are those of the first lines; a longer cell
// that comes later moves its line's other cells to the right.
class AlignedLines {
 public:
  explicit AlignedLines(Output* output) : output_(output) {}

  // Lines have as many cells as the first one.
  void Add(std::vector<std::string> cells);
  // After the last line.
  void End() { WriteLines(); }

 private:
  void WriteLines();

  Output* const output_;
  std::vector<std::vector<std::string>> lines_;  // that wait for the widths
  bool aligned_ = false;
  std::vector<size_t> widths_;  // of the cells
};

}  // namespace cairn::tools
