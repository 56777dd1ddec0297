#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/delta/row_updates.h"
#include "engine/version/index_version.h"

namespace cairn {

// Returns `version` with updates that no other reader sees, such as the writes of an open
// transaction. IndexWriter does not know the result, whose rows and entries are those of `version`
// except for the changed ones. Rows with entries keep their ids. New rows, and rows that were
// deleted before, have ids that later versions of the index may give to other rows.
//
// Takes about 3 us per updated row, plus the time to copy the sets of removed positions, which is 1
// bit per entry of the base. The first call for a base takes time for all of its entries
// (RowEntries). Thread-safe. Errors: InvalidArgument if the updates are not of this index;
// Unimplemented if they delete ranges; ResourceExhausted if row ids run out; DataLoss. Throws
// std::bad_alloc.
absl::StatusOr<std::shared_ptr<const IndexVersion>> BranchVersion(const IndexVersion& version,
                                                                  const RowUpdates& updates);

}  // namespace cairn
