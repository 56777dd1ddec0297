#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/delta/delta.h"

namespace cairn {

// A delta whose remaining rows and tuples have new numbers (DeltaWriter::Renumber).
struct RenumberedDelta {
  std::shared_ptr<Delta> delta;        // the same entries, in one part
  std::shared_ptr<const Delta> since;  // see DeltaWriter::Renumbered
  std::shared_ptr<DeltaRows> rows;     // of both
  std::shared_ptr<DeltaTuples> tuples;
};

// Gives the remaining new rows ids in primary-key order; rows that `since` has come first. The time
// is proportional to the rows and entries that were added since the base was built. Errors:
// InvalidArgument unless `delta` is a later version than `since` of the same writer;
// ResourceExhausted if memory runs out. Throws std::bad_alloc.
absl::StatusOr<RenumberedDelta> RenumberDelta(const Delta& since, const Delta& delta);

}  // namespace cairn
