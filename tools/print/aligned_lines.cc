#include "tools/print/aligned_lines.h"

#include <algorithm>
#include <utility>

namespace cairn::tools {
namespace {

constexpr size_t kLinesToAlign = 200;

// The number of UTF-8 characters: the width, if a terminal shows each in one column.
size_t Columns(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void AppendCell(const std::string& cell, size_t width, std::string* line) {
  line->append(cell);
  line->append(width - std::min(width, Columns(cell)) + 2, ' ');
}

}  // namespace

void AlignedLines::Add(std::vector<std::string> cells) {
  lines_.push_back(std::move(cells));
  if (aligned_ || lines_.size() > kLinesToAlign) WriteLines();
}

void AlignedLines::WriteLines() {
  if (lines_.empty()) return;
  if (!aligned_) {
    widths_.assign(lines_.front().size(), 0);
    for (const auto& line : lines_) {
      for (size_t c = 0; c < line.size(); ++c) widths_[c] = std::max(widths_[c], Columns(line[c]));
    }
    aligned_ = true;
  }
  for (const auto& line : lines_) {
    std::string text;
    for (size_t c = 0; c + 1 < line.size(); ++c) AppendCell(line[c], widths_[c], &text);
    text += line.back();
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
    output_->Write(text);
  }
  lines_.clear();
}

}  // namespace cairn::tools
