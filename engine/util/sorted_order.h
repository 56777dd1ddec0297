#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace cairn {

// The order in which keys ascend, equal ones as they come: keys[order[0]] is the least. Key is
// uint32_t, uint64_t or std::string_view. Sorts on the caller's thread; requires fewer than 2^32
// keys. Throws std::bad_alloc.
template <typename Key>
std::vector<uint32_t> SortedOrder(absl::Span<const Key> keys);

}  // namespace cairn
