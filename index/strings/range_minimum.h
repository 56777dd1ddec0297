#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace cairn {

// Finds the position of the minimum of any consecutive values: a tree of minima, each of kFanOut
// below it. Immutable; thread-safe. Uses a fifteenth of the values' memory; a query reads at most
// 2 kFanOut values per level.
class RangeMinimum {
 public:
  // `values` must outlive this. Throws std::bad_alloc.
  explicit RangeMinimum(absl::Span<const uint32_t> values) {
    for (absl::Span<const uint32_t> below = values; below.size() > kFanOut;) {
      std::vector<uint32_t> minima;
      minima.reserve(below.size() / kFanOut + 1);
      for (size_t i = 0; i < below.size(); i += kFanOut) {
        const absl::Span<const uint32_t> part = below.subspan(i, kFanOut);
        minima.push_back(*std::min_element(part.begin(), part.end()));
      }
      minima_.push_back(std::move(minima));
      below = minima_.back();
    }
    levels_.push_back(values.data());
    for (const std::vector<uint32_t>& minima : minima_) levels_.push_back(minima.data());
  }

  // The first position of the least value in [first, last), which must not be empty.
  size_t ArgMin(size_t first, size_t last) const { return ArgMin(0, first, last); }

 private:
  static constexpr size_t kFanOut = 16;

  size_t ArgMin(size_t level, size_t first, size_t last) const {
    const uint32_t* const values = levels_[level];
    const auto min_of = [values](size_t from, size_t to) {
      return static_cast<size_t>(std::min_element(values + from, values + to) - values);
    };
    if (last - first <= 2 * kFanOut) return min_of(first, last);
    // Whole parts by their minima, between the rest on either side.
    const size_t part = (first + kFanOut - 1) / kFanOut, end_part = last / kFanOut;
    const size_t min_part = ArgMin(level + 1, part, end_part);
    const size_t candidates[] = {
        first < part * kFanOut ? min_of(first, part * kFanOut) : min_part * kFanOut,
        min_of(min_part * kFanOut, min_part * kFanOut + kFanOut),
        end_part * kFanOut < last ? min_of(end_part * kFanOut, last) : min_part * kFanOut};
    return *std::min_element(std::begin(candidates), std::end(candidates), [&](size_t a, size_t b) {
      return values[a] != values[b] ? values[a] < values[b] : a < b;
    });
  }

  std::vector<std::vector<uint32_t>> minima_;
  std::vector<const uint32_t*> levels_;  // the values, then minima_
};

}  // namespace cairn
