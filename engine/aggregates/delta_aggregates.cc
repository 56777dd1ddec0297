#include "engine/aggregates/delta_aggregates.h"

#include "index/machine/status_macros.h"

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

}  // namespace cairn
