#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cairn/sorted_run.h"
#include "engine/delta/delta.h"
#include "engine/delta/row_updates.h"
#include "engine/rows/row_table.h"
#include "index/machine/mutex.h"

namespace cairn {

// Makes the versions of an index, one after the other, by applying updates to the latest version.
// Thread-safe: calls of Apply run one at a time. They do not wait for readers, and readers do not
// wait for them.
//
// The main cost of an update is finding its row in the base (RowTable). Batches are sorted by
// primary key first, so large batches find their rows in one pass. New entries form a small
// segment. It is merged with preceding segments that are not several times larger, as in an
// LSM-tree (O'Neil et al., 1996). So there are few segments, and an entry is copied a few times.
//
// In addition to a Delta's memory (DeltaStats), the writer keeps the ids of new rows by primary key
// (NewRowIds) and the keys of changed rows (RowKeys): about 30 bytes per new row. It also keeps a
// search structure over the base's entries: 0.3 to 4 bytes per entry. Rows and tuples that were
// deleted or replaced stay in memory until Renumber or a merge into a new base leaves them out.
class DeltaWriter {
 public:
  // Creates a writer whose first version has exactly the entries of a base. The first update does
  // some work that is linear in the base, on up to `threads` threads. `base_columns` are the
  // included columns of the base's rows. Updates must have tuples of these columns, and no tuples
  // if there are none.
  static absl::StatusOr<std::unique_ptr<DeltaWriter>> Create(SortedRun base_run, RowTable base_rows,
                                                             int threads = 1,
                                                             ColumnTable base_columns = {});
  virtual ~DeltaWriter() = default;

  // Makes the version after `updates` and returns it. A row whose keys do not change costs one
  // look-up and changes nothing, unless it gets a new tuple. Then all its entries are replaced by
  // new ones, so that the values of an entry never change. On error the version is unchanged.
  // Errors: InvalidArgument if the keys are of another kind, columns differ in length, a primary
  // key occurs twice, or tuples are missing or unexpected; ResourceExhausted if memory or row ids
  // run out; DataLoss if the base is damaged.
  virtual absl::StatusOr<std::shared_ptr<const Delta>> Apply(const RowUpdates& updates) = 0;

  // Makes `delta`, one of this writer's versions, the latest version again. No caller may have seen
  // the versions after it.
  virtual void RollBack(std::shared_ptr<const Delta> delta) = 0;

  // A new writer over the same base. Its latest version has the same entries as `delta`, one of
  // this writer's versions, but lacks deleted new rows and replaced tuples
  // (DeltaStats::dead_new_rows, dead_tuples). So its memory is proportional to the live data. New
  // rows get other ids. The versions of this writer do not change.
  struct Renumbered {
    std::unique_ptr<DeltaWriter> writer;
    // Replaces `since`, an older version of this writer than `delta`, as the argument of
    // DeltaChanges::Since. For that purpose, rows that `since` has and that were deleted later are
    // kept. It has no entries, unless nothing changed between the two versions; then it is the new
    // writer's version.
    std::shared_ptr<const Delta> since;
  };
  // With Sharing::kNone, this writer may continue alongside the new one. Otherwise no caller may
  // apply updates to this writer any more. The time is proportional to the entries and rows that
  // were added since the base was built. Errors: InvalidArgument unless `delta` follows `since`;
  // ResourceExhausted if memory runs out.
  enum class Sharing : uint8_t { kPages, kNone };
  virtual absl::StatusOr<Renumbered> Renumber(const Delta& since, const Delta& delta,
                                              Sharing sharing) = 0;

  // The latest version. The first one is empty.
  std::shared_ptr<const Delta> delta() const {
    const MutexLock lock(&delta_mutex_);
    return delta_;
  }

 protected:
  explicit DeltaWriter(std::shared_ptr<const Delta> delta) : delta_(std::move(delta)) {}
  void Publish(std::shared_ptr<const Delta> delta) {
    const MutexLock lock(&delta_mutex_);
    delta_.swap(delta);
  }

 private:
  mutable Mutex delta_mutex_;
  std::shared_ptr<const Delta> delta_ ABSL_GUARDED_BY(delta_mutex_);
};

}  // namespace cairn
