#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace cairn {

// The first position in [first, last) that does not satisfy `holds`, or `last` if all do, by binary
// search. Positions that satisfy it must come first.
template <typename Position, typename Holds>
Position PartitionPoint(Position first, Position last, Holds holds) {
  while (first < last) {
    const Position middle = first + (last - first) / 2;
    if (holds(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

// The first position in [first, last) whose entry does not satisfy `holds`, or `last` if all do.
// Entries that satisfy it must come first. The search doubles its steps, then halves them: 2
// log2(d) probes for an answer d entries away, so short runs of duplicates cost a probe or two.
template <typename Holds>
size_t Gallop(size_t first, size_t last, Holds holds) {
  size_t step = 1;
  while (first < last && holds(std::min(first + step, last) - 1)) {
    first = std::min(first + step, last);
    step *= 2;
  }
  // The answer is at most `step` - 1 entries ahead: the entry that ends the stride does not satisfy
  // it.
  if (first < last) last = std::min(first + step, last) - 1;
  return PartitionPoint(first, last, holds);
}

inline bool StartsWith(std::string_view key, std::string_view prefix) {
  return key.size() >= prefix.size() && key.substr(0, prefix.size()) == prefix;
}

}  // namespace cairn
