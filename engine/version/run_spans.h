#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/version/version_ranges.h"

namespace cairn {

// The positions [begin, end) of some ranges, or groups, in each run of a version.
class RunSpans {
 public:
  RunSpans(size_t runs, size_t most) : most_(most), begin_(runs * most), end_(runs * most) {}

  size_t size() const { return size_; }
  bool full() const { return size_ == most_; }
  void Clear() { size_ = 0; }
  // Appends a range by its positions in each run.
  void Append(absl::Span<const RunRange> runs) {
    for (size_t r = 0; r < runs.size(); ++r) {
      begin_[r * most_ + size_] = static_cast<Position>(runs[r].begin);
      end_[r * most_ + size_] = static_cast<Position>(runs[r].end);
    }
    ++size_;
  }
  // Sets all ranges at once, in a version with only the base's run.
  void Assign(absl::Span<const Position> begin, absl::Span<const Position> end) {
    size_ = begin.size();
    std::copy(begin.begin(), begin.end(), begin_.begin());
    // Crossed ends contain nothing.
    for (size_t i = 0; i < size_; ++i) end_[i] = std::max(begin[i], end[i]);
  }

  absl::Span<const Position> begin(size_t run) const {
    return absl::MakeConstSpan(begin_).subspan(run * most_, size_);
  }
  absl::Span<const Position> end(size_t run) const {
    return absl::MakeConstSpan(end_).subspan(run * most_, size_);
  }

 private:
  const size_t most_;
  size_t size_ = 0;
  std::vector<Position> begin_, end_;  // one run after the other
};

}  // namespace cairn
