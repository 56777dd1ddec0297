#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/delta/delta.h"
#include "engine/delta/row_updates.h"

namespace cairn {

// The rows whose entries are not those of another state, with the entries that they have, in
// primary-key order: what a delta is stored as, and what carries it over to a new base. Immutable;
// every method is safe from any number of threads.
class DeltaChanges {
 public:
  // What changed since the base: rows with other entries than there, and rows of the base without
  // any. A DeltaWriter over the base that applies them has the version again, but for row ids.
  static absl::StatusOr<DeltaChanges> SinceBase(std::shared_ptr<const Delta> delta);
  // What changed since an older version of the same base, and perhaps rows that did not. A
  // DeltaWriter over a base that was made of `since` comes by them to the version's entries.
  static absl::StatusOr<DeltaChanges> Since(const Delta& since, std::shared_ptr<const Delta> delta);

  // The rows, in primary-key order.
  absl::Span<const RowId> rows() const { return rows_; }
  // Appends `count` rows from `first` on, each with all its keys in ascending order. DataLoss;
  // ResourceExhausted where memory does not suffice.
  absl::Status Append(size_t first, size_t count, RowUpdates* updates) const;

 private:
  explicit DeltaChanges(std::shared_ptr<const Delta> delta) : delta_(std::move(delta)) {}
  static absl::StatusOr<DeltaChanges> Find(const Delta* since, std::shared_ptr<const Delta> delta);

  std::shared_ptr<const Delta> delta_;
  std::vector<RowId> rows_;
  std::shared_ptr<const DeltaSegment> added_;             // null: no entries
  std::vector<std::pair<RowId, Position>> added_by_row_;  // ascending; positions in added_
};

}  // namespace cairn
