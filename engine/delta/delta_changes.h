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

// The difference of two versions of one base: the rows that the updates between them changed, with
// the keys that these have in the later one, in primary-key order. That is what is stored of an
// update, and what carries it over to a new base. Takes time and memory for what came between, not
// for what came before. Immutable; every method is safe from any number of threads.
class DeltaChanges {
 public:
  // What changed since an older version of the same base, and perhaps rows that are what they were;
  // rows that came after `since` and went again are left out. A DeltaWriter over anything that has
  // what `since` has comes by them to the version's entries.
  // InvalidArgument where `since` is no older version of the same writer; ResourceExhausted.
  static absl::StatusOr<DeltaChanges> Since(const Delta& since, std::shared_ptr<const Delta> delta);
  // At most so many rows would that be; takes no time. InvalidArgument likewise.
  static absl::StatusOr<uint64_t> MostRowsSince(const Delta& since, const Delta& delta);

  // The rows, in primary-key order.
  absl::Span<const RowId> rows() const { return rows_; }
  // Appends `count` rows from `first` on, each with all its keys in ascending order, and with its
  // tuple in an index that includes columns. DataLoss; ResourceExhausted where memory does not
  // suffice.
  absl::Status Append(size_t first, size_t count, RowUpdates* updates) const;

 private:
  explicit DeltaChanges(std::shared_ptr<const Delta> delta) : delta_(std::move(delta)) {}

  std::shared_ptr<const Delta> delta_;
  std::vector<RowId> rows_;
  KeysOfRows changed_;           // by row id
  std::vector<uint32_t> order_;  // where each of rows_ is there
};

}  // namespace cairn
