#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/delta/delta.h"

namespace cairn {

// Which keys a version has that its base lacks, and lacks that its base has: the number of distinct
// keys in a range is that of the base, less those lost, and those gained. Immutable.
struct DistinctChanges {
  std::vector<Position> lost;                 // where each begins in the base, ascending
  std::vector<std::vector<Position>> gained;  // by part: the first entry left of each, ascending

  // Takes time for the delta's entries. Throws std::bad_alloc.
  static absl::StatusOr<DistinctChanges> Of(const Delta& delta);

  uint64_t memory_bytes() const;
};

}  // namespace cairn
