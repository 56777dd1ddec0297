#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/delta/delta.h"

namespace cairn {

// A delta whose rows and tuples are numbered again: only those that are left
// (DeltaWriter::Renumber).
struct RenumberedDelta {
  std::shared_ptr<Delta> delta;        // the same entries, in one part
  std::shared_ptr<const Delta> since;  // see DeltaWriter::Renumbered
  std::shared_ptr<DeltaRows> rows;     // of both
  std::shared_ptr<DeltaTuples> tuples;
};

// The later rows that are left get ids in the order of their primary keys, those that `since` knows
// first. Takes time for the rows and entries that came since the base was built. InvalidArgument
// unless `delta` is a later version than `since` of one writer; ResourceExhausted if memory is not
// enough. Throws std::bad_alloc.
absl::StatusOr<RenumberedDelta> RenumberDelta(const Delta& since, const Delta& delta);

}  // namespace cairn
