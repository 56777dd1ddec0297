#pragma once

#include <vector>

#include "absl/status/status.h"
#include "engine/delta/delta.h"
#include "engine/delta/delta_rows.h"
#include "engine/delta/delta_segment.h"

namespace cairn {

// Removes entries from the parts of *next that have them. Internal where one is in none. Key is
// uint32_t, uint64_t or std::string_view.
template <typename Key>
absl::Status TakeEntries(std::vector<DeltaEntry<Key>> taken, const DeltaRows& rows, Delta* next);

}  // namespace cairn
