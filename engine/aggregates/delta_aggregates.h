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

// Which keys a version has that its base lacks, and lacks that its base has: the number of distinct
// keys in a range is that of the base, less those lost, and those gained. Immutable.
struct DistinctChanges {
  std::vector<Position> lost;                 // where each begins in the base, ascending
  std::vector<std::vector<Position>> gained;  // by part: the first entry left of each, ascending

  // Takes time for the delta's entries. Throws std::bad_alloc.
  static absl::StatusOr<DistinctChanges> Of(const Delta& delta);

  uint64_t memory_bytes() const;
};

// What answers aggregates over a version beyond what its base has for them: of the parts of its
// delta, and of what is removed. Made piece by piece when it is asked for, from that of a version
// before where there is such. Holds nothing of the delta but its segments, so that it may outlive
// it. Thread-safe.
class DeltaAggregates {
 public:
  // Of `delta`; `before` is of another version over the same base, or null. Throws std::bad_alloc.
  DeltaAggregates(const Delta& delta, DeltaAggregates* before);

  // Entries of part `part`, which must be of the same delta, as must each Delta that follows.
  const RunAggregates& part(size_t part) const { return *parts_[part].aggregates; }

  // A column's values in a part's entries. Errors as Delta::SegmentValues'. Throws std::bad_alloc.
  absl::StatusOr<const ColumnValues*> PartValues(const Delta& delta, size_t part,
                                                 size_t column) const;

  // What is left of a run in a version: of the base (run 0) or of part `run` - 1, of which
  // `structure` knows all. Throws std::bad_alloc.
  template <typename Measure>
  std::shared_ptr<const MaskedRun<Measure>> Masked(const Delta& delta, size_t run, size_t column,
                                                   const typename Measure::Structure& structure);

  // Errors as DistinctChanges::Of's.
  absl::StatusOr<const DistinctChanges*> Distinct(const Delta& delta);

  uint64_t memory_bytes() const;

 private:
  struct Part {
    std::shared_ptr<const DeltaSegment> segment;
    std::shared_ptr<const RunAggregates> aggregates;
  };
  // What is measured: of a segment, or of the base (null), which column, and how.
  struct MaskKey {
    const DeltaSegment* segment;
    size_t column;
    MeasureKind kind;

    auto operator<=>(const MaskKey&) const = default;
  };
  struct Mask {
    std::shared_ptr<const void> masked;  // a MaskedRun of the measure
    bool current = false;                // of this version, not of one before
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
