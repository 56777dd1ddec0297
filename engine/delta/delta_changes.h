#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/delta/change_log.h"
#include "engine/delta/delta.h"
#include "engine/delta/row_updates.h"

namespace cairn {

// The difference of two versions with the same base: the rows that the updates between them
// changed, in primary-key order, each with its keys in the later version. An update stores this
// difference, and a merge carries it over to a new base. Time and memory are proportional to the
// changes between the versions. Immutable; every method is safe from any number of threads.
class DeltaChanges {
 public:
  // Returns the changes since an older version with the same base. They may contain rows whose keys
  // are the same again. Rows that were added after `since` and then deleted are left out. If a
  // DeltaWriter with the entries of `since` applies the changes, it gets the entries of `delta`.
  // Errors: InvalidArgument unless `since` is an older version of the same writer;
  // ResourceExhausted if memory runs out.
  static absl::StatusOr<DeltaChanges> Since(const Delta& since, std::shared_ptr<const Delta> delta);
  // Returns an upper bound of the number of rows of Since; reads no changes. Errors:
  // InvalidArgument as for Since.
  static absl::StatusOr<uint64_t> MostRowsSince(const Delta& since, const Delta& delta);

  // The rows, in primary-key order.
  absl::Span<const RowId> rows() const { return rows_; }
  // Appends `count` rows from `first` on. Each has all its keys in ascending order, and its tuple
  // if the index includes columns. Errors: DataLoss if the base is damaged; ResourceExhausted if
  // memory runs out.
  absl::Status Append(size_t first, size_t count, RowUpdates* updates) const;

 private:
  explicit DeltaChanges(std::shared_ptr<const Delta> delta) : delta_(std::move(delta)) {}

  std::shared_ptr<const Delta> delta_;
  std::vector<RowId> rows_;
  KeysOfRows changed_;           // by row id
  std::vector<uint32_t> order_;  // the index in changed_ of each row in rows_
};

}  // namespace cairn
