#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "cairn/types.h"
#include "test/test_random.h"

namespace cairn::gpu {

// Ranges of positions with the expected results.
struct PositionRanges {
  std::vector<Position> begin;
  std::vector<uint64_t> offsets = {0};

  void Add(uint64_t from, uint64_t count) {
    begin.push_back(static_cast<Position>(from));
    offsets.push_back(offsets.back() + count);
  }
  size_t size() const { return begin.size(); }
};

// Ranges of random places, of lengths that length() gives.
inline PositionRanges RandomRanges(size_t count, size_t entries, uint64_t salt,
                                   const std::function<uint64_t(std::mt19937_64&)>& length) {
  auto random = TestRandom(salt);
  PositionRanges ranges;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t rows = std::min<uint64_t>(length(random), entries);
    ranges.Add(random() % (entries - rows + 1), rows);
  }
  if (ranges.offsets.back() == 0) ranges.Add(0, 1);
  return ranges;
}

}  // namespace cairn::gpu
