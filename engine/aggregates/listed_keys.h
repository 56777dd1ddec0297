#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cairn/query.h"

namespace cairn {

// Keys that one of several indexes has in each of some ranges or groups: all that others may have,
// too, in order and each once. Plain data; what changes it throws std::bad_alloc.
struct ListedKeys {
  uint64_t size(size_t i) const { return offsets[i + 1] - offsets[i]; }
  // Appends those of further ranges.
  void Append(const ListedKeys& more);

  std::vector<uint64_t> offsets = {0};  // range i's are keys offsets[i] … offsets[i + 1] - 1
  EncodedKeys keys;
};

// What one index lists of a range: the i-th of `listed`.
struct KeyListOf {
  size_t range;
  const ListedKeys* listed;
  size_t i;
};

// Calls body(range, repeats) for each range of which several lists have keys in common: how many
// times too often these are in all lists of it. Sorts the lists by range; their keys are of one
// kind. Throws std::bad_alloc.
void ForEachRepeated(std::vector<KeyListOf>* lists,
                     absl::FunctionRef<void(size_t range, uint64_t repeats)> body);

}  // namespace cairn
