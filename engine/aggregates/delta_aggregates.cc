#include "engine/aggregates/delta_aggregates.h"

#include <algorithm>
#include <string_view>

#include "absl/types/span.h"
#include "cpu_fast/simd/key_filter.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {

DeltaAggregates::DeltaAggregates(const Delta& delta, DeltaAggregates* before) {
  for (const DeltaPart& part : delta.parts) {
    parts_.push_back({part.segment, nullptr});
    for (size_t i = 0; before != nullptr && i < before->parts_.size(); ++i) {
      if (before->parts_[i].segment == part.segment) {
        parts_.back().aggregates = before->parts_[i].aggregates;
      }
    }
    if (parts_.back().aggregates == nullptr) {
      parts_.back().aggregates =
          std::make_shared<const RunAggregates>(delta.base_columns.columns().size());
    }
  }
  if (before == nullptr) return;
  const MutexLock before_lock(&before->mutex_);
  const MutexLock lock(&mutex_);
  for (const auto& [key, mask] : before->masks_) {
    bool there = key.segment == nullptr;
    for (const Part& part : parts_) there |= part.segment.get() == key.segment;
    if (there) masks_[key] = {mask.masked, false, mask.bytes};
  }
}

absl::StatusOr<const ColumnValues*> DeltaAggregates::PartValues(const Delta& delta, size_t part,
                                                                size_t column) const {
  return parts_[part].aggregates->column(column).values.Get(
      [&]() -> absl::StatusOr<std::unique_ptr<const ColumnValues>> {
        auto values = std::make_unique<ColumnValues>();
        RETURN_IF_ERROR(delta.SegmentValues(*parts_[part].segment, column, values.get()));
        return values;
      });
}

absl::StatusOr<const DistinctChanges*> DeltaAggregates::Distinct(const Delta& delta) {
  return distinct_.Get([&]() -> absl::StatusOr<std::unique_ptr<const DistinctChanges>> {
    ASSIGN_OR_RETURN(DistinctChanges changes, DistinctChanges::Of(delta));
    return std::make_unique<const DistinctChanges>(std::move(changes));
  });
}

uint64_t DeltaAggregates::memory_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.aggregates->memory_bytes();
  if (distinct_.get() != nullptr) bytes += distinct_.get()->memory_bytes();
  const MutexLock lock(&mutex_);
  for (const auto& [key, mask] : masks_) bytes += mask.bytes;
  return bytes;
}

namespace {

// One thread's work on a version. Key is uint32_t, uint64_t or std::string_view.
template <typename Key>
class DistinctFinder {
 public:
  explicit DistinctFinder(const Delta& delta)
      : delta_(delta), base_(ColumnOf<Key>(delta.base_run)), base_size_(delta.base_run.size()) {}

  // A key is lost if all of its entries are removed, including the first one.
  std::vector<Position> Lost() const {
    std::vector<Position> lost;
    const PositionSet& removed = delta_.removed;
    for (uint64_t p = removed.FirstMember(0, base_size_); p < base_size_;) {
      uint64_t next = p + 1;
      const Key key = base_[p];
      if (p == 0 || base_[p - 1] != key) {
        const uint64_t end = EndOfKey(base_, p, base_size_, key);
        if (removed.FirstAbsent(p, end) == end) {
          lost.push_back(static_cast<Position>(p));
          next = end;
        }
      }
      p = removed.FirstMember(next, base_size_);
    }
    return lost;
  }

  // Returns the keys that this part has and neither the base nor an earlier part has.
  absl::StatusOr<std::vector<Position>> Gained(size_t part) const {
    std::vector<Position> gained;
    const DeltaSegment& segment = *delta_.parts[part].segment;
    const auto column = ColumnOf<Key>(segment.run());
    for (uint64_t p = 0, end = 0; p < segment.size(); p = end) {
      const Key key = column[p];
      end = EndOfKey(column, p, segment.size(), key);
      // A group begins at its first entry that is not removed, and so does the key in it.
      const uint64_t first = delta_.parts[part].removed.FirstAbsent(p, end);
      if (first == end) continue;
      if (InBase(key, segment.places()[p])) continue;
      ASSIGN_OR_RETURN(const bool before, InPartBefore(key, part));
      if (!before) gained.push_back(static_cast<Position>(first));
    }
    return gained;
  }

 private:
  using Column = decltype(ColumnOf<Key>(SortedRun()));

  static uint64_t EndOfKey(const Column& column, uint64_t p, uint64_t size, const Key& key) {
    return Gallop(p, size, [&](size_t at) { return column[at] == key; });
  }

  // Returns whether the base has an entry with the key that is not removed. `place` is the position
  // in the base where the key sorts.
  bool InBase(const Key& key, uint64_t place) const {
    uint64_t begin = place;
    if (begin > 0 && base_[begin - 1] == key) {
      begin = Gallop(0, place, [&](size_t at) { return base_[at] < key; });
    }
    const uint64_t end = EndOfKey(base_, place, base_size_, key);
    return delta_.removed.FirstAbsent(begin, end) < end;
  }

  absl::StatusOr<bool> InPartBefore(const Key& key, size_t part) const {
    const uint64_t hash = KeyFilter::Hash(key);
    for (size_t i = 0; i < part; ++i) {
      const auto& [segment, removed] = delta_.parts[i];
      Position first = DeltaSegment::kNone;
      RETURN_IF_ERROR(segment->FindFirst(absl::MakeConstSpan(&key, 1),
                                         absl::MakeConstSpan(&hash, 1), absl::MakeSpan(&first, 1)));
      if (first == DeltaSegment::kNone) continue;
      const uint64_t end = EndOfKey(ColumnOf<Key>(segment->run()), first, segment->size(), key);
      if (removed.FirstAbsent(first, end) < end) return true;
    }
    return false;
  }

  const Delta& delta_;
  const Column base_;
  const uint64_t base_size_;
};

}  // namespace

absl::StatusOr<DistinctChanges> DistinctChanges::Of(const Delta& delta) {
  return WithPhysicalKey(delta.base_run.kind(), [&](auto type) -> absl::StatusOr<DistinctChanges> {
    const DistinctFinder<typename decltype(type)::type> finder(delta);
    DistinctChanges changes;
    changes.lost = finder.Lost();
    for (size_t i = 0; i < delta.parts.size(); ++i) {
      ASSIGN_OR_RETURN(std::vector<Position> gained, finder.Gained(i));
      changes.gained.push_back(std::move(gained));
    }
    return changes;
  });
}

uint64_t DistinctChanges::memory_bytes() const {
  uint64_t bytes = lost.capacity() * sizeof(Position);
  for (const auto& part : gained) bytes += part.capacity() * sizeof(Position);
  return bytes;
}

}  // namespace cairn
