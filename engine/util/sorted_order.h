#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace cairn {

// Returns the indexes of the keys in ascending order of keys: keys[order[0]] is the smallest. Equal
// keys keep their order. Key is uint32_t, uint64_t or std::string_view. Sorts on the caller's
// thread. Requires fewer than 2^32 keys. Throws std::bad_alloc.
template <typename Key>
std::vector<uint32_t> SortedOrder(absl::Span<const Key> keys);

}  // namespace cairn
