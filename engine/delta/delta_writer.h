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

// Makes the versions of an index, one after the other: applies updates to what a base and the
// updates before them have. Thread-safe: one call of Apply works at a time, and none waits for
// readers or makes them wait.
//
// What an update costs is mostly finding its row among the base's (RowTable); batches are sorted by
// primary key first, so larger ones find them in passing. New entries become a small segment, which
// is merged with those before it that are not several times larger (LSM-trees; O'Neil et al.,
// 1996), so that there are few and an entry is copied a few times.
//
// In addition to what a Delta counts (DeltaStats) it keeps the primary keys of new rows and the
// keys of changed rows in hash maps: about 60 bytes per row; and a search structure over the base's
// entries, of 0.3 to 4 bytes per entry. Rows and tuples that came and went stay in memory until
// Renumber, or a merge into another base, leaves them out.
class DeltaWriter {
 public:
  // For the rows and entries of a base, of which the version at hand has all. `threads`: for what
  // is linear in the base, once, at the first update. `base_columns`: what the index includes of
  // the base's rows; updates have tuples of these columns, and none where there are none.
  static absl::StatusOr<std::unique_ptr<DeltaWriter>> Create(SortedRun base_run, RowTable base_rows,
                                                             int threads = 1,
                                                             ColumnTable base_columns = {});
  virtual ~DeltaWriter() = default;

  // Makes the version after `updates`, and returns it. A row whose keys stay what they are costs
  // its look-up and changes nothing, unless it is given a tuple: then all its entries come anew, so
  // that the values that belong to an entry never change. An error leaves the version as it was:
  // InvalidArgument for keys of another kind, columns of different lengths, tuples where there are
  // to be none or the reverse, or a primary key that comes twice; ResourceExhausted where memory or
  // row ids do not suffice; DataLoss where the base is damaged.
  virtual absl::StatusOr<std::shared_ptr<const Delta>> Apply(const RowUpdates& updates) = 0;

  // Takes back what was applied since `delta`, one of this writer's versions, which is the latest
  // one again. Nobody may have been told of those in between.
  virtual void RollBack(std::shared_ptr<const Delta> delta) = 0;

  // A writer over the same base whose latest version has the entries, the rows and the tuples of
  // `delta`, one of this writer's versions, without the rows and tuples that came and went (
  // DeltaStats::dead_new_rows, dead_tuples): memory in proportion to what is there. Rows that the
  // base lacks get other ids. The versions of this writer stay what they are.
  struct Renumbered {
    std::unique_ptr<DeltaWriter> writer;
    // Stands for `since`, one of this writer's versions before `delta`, when DeltaChanges::Since is
    // asked: so rows that `since` had, and that are gone by now, are kept. It has no entries,
    // unless nothing changed between the two: then it is the writer's version.
    std::shared_ptr<const Delta> since;
  };
  // With Sharing::kNone this writer may go on beside the new one; otherwise neither it nor its
  // versions may be applied to any more. Takes time for the entries and rows that came since the
  // base was built, nothing for the base's. InvalidArgument unless `delta` follows `since`;
  // ResourceExhausted if memory is not enough.
  enum class Sharing : uint8_t { kPages, kNone };
  virtual absl::StatusOr<Renumbered> Renumber(const Delta& since, const Delta& delta,
                                              Sharing sharing) = 0;

  // The latest version; at first, one that is empty.
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
