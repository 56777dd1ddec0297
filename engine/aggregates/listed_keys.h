#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cairn/query.h"

namespace cairn {

// The keys of one of several indexes in each of some ranges or groups that other indexes may also
// have, in order and without duplicates. Plain data; methods that change it throw std::bad_alloc.
struct ListedKeys {
  uint64_t size(size_t i) const { return offsets[i + 1] - offsets[i]; }
  // Appends the keys of more ranges.
  void Append(const ListedKeys& more);

  std::vector<uint64_t> offsets = {0};  // range i has keys offsets[i] … offsets[i + 1] - 1
  EncodedKeys keys;
};

// The keys that one index lists for a range: list i of `listed`.
struct KeyListOf {
  size_t range;
  const ListedKeys* listed;
  size_t i;
};

// Calls body(range, repeats) for each range for which several lists have keys in common. `repeats`
// is the total number of keys in the range's lists minus that of distinct keys. Sorts the lists by
// range; their keys are of one kind. Throws std::bad_alloc.
void ForEachRepeated(std::vector<KeyListOf>* lists,
                     absl::FunctionRef<void(size_t range, uint64_t repeats)> body);

}  // namespace cairn
