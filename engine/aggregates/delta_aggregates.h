#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "engine/aggregates/masked_run.h"
#include "engine/aggregates/measures.h"
#include "engine/aggregates/run_aggregates.h"
#include "engine/delta/delta.h"
#include "index/machine/mutex.h"

namespace cairn {

// The differences between a version's keys and its base's. The number of distinct keys in a range
// is that of the base, minus the lost ones, plus the gained ones. Immutable.
struct DistinctChanges {
  std::vector<Position> lost;  // first base entry of each, ascending
  // For each part, the first entry that is not removed of each key, ascending.
  std::vector<std::vector<Position>> gained;

  // Takes time linear in the delta's entries. Throws std::bad_alloc.
  static absl::StatusOr<DistinctChanges> Of(const Delta& delta);

  uint64_t memory_bytes() const;
};

// The structures that answer aggregates over a version, in addition to those of its base: for the
// parts of its delta, and for removed entries. Each is built on first use, from that of an earlier
// version if there is one. It keeps only the segments of the delta, so that it may outlive the
// delta. Thread-safe.
class DeltaAggregates {
 public:
  // `before` belongs to another version over the same base, or is null. Throws std::bad_alloc.
  DeltaAggregates(const Delta& delta, DeltaAggregates* before);

  // The structures of part `part`'s entries. `part` must refer to the constructor's delta; so must
  // each Delta passed below.
  const RunAggregates& part(size_t part) const { return *parts_[part].aggregates; }

  // Returns a column's values in a part's entries. Errors: those of Delta::SegmentValues. Throws
  // std::bad_alloc.
  absl::StatusOr<const ColumnValues*> PartValues(const Delta& delta, size_t part,
                                                 size_t column) const;

  // Returns the measure over the remaining entries of a run: the base (run 0) or part `run` - 1.
  // `structure` covers all entries of the run. Throws std::bad_alloc.
  template <typename Measure>
  std::shared_ptr<const MaskedRun<Measure>> Masked(const Delta& delta, size_t run, size_t column,
                                                   const typename Measure::Structure& structure);

  // Errors: those of DistinctChanges::Of.
  absl::StatusOr<const DistinctChanges*> Distinct(const Delta& delta);

  uint64_t memory_bytes() const;

 private:
  struct Part {
    std::shared_ptr<const DeltaSegment> segment;
    std::shared_ptr<const RunAggregates> aggregates;
  };
  // The measured run (a segment, or null for the base), its column, and the measure.
  struct MaskKey {
    const DeltaSegment* segment;
    size_t column;
    MeasureKind kind;

    auto operator<=>(const MaskKey&) const = default;
  };
  struct Mask {
    std::shared_ptr<const void> masked;  // a MaskedRun of the measure
    bool current = false;                // of this version, not of an earlier one
    uint64_t bytes = 0;
  };

  std::vector<Part> parts_;
  mutable Mutex mutex_;
  std::map<MaskKey, Mask> masks_ ABSL_GUARDED_BY(mutex_);
  MadeOnce<DistinctChanges> distinct_;
};

template <typename Measure>
std::shared_ptr<const MaskedRun<Measure>> DeltaAggregates::Masked(
    const Delta& delta, size_t run, size_t column, const typename Measure::Structure& structure) {
  const DeltaSegment* const segment = run == 0 ? nullptr : parts_[run - 1].segment.get();
  const MutexLock lock(&mutex_);
  Mask& mask = masks_[{segment, column, Measure::kKind}];
  auto masked = std::static_pointer_cast<const MaskedRun<Measure>>(mask.masked);
  if (mask.current) return masked;
  const PositionSet& removed = run == 0 ? delta.removed : delta.parts[run - 1].removed;
  masked = std::make_shared<const MaskedRun<Measure>>(structure, removed, masked.get());
  mask = {masked, true, masked->memory_bytes()};
  return masked;
}

}  // namespace cairn
