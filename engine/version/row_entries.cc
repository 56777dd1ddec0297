#include "engine/version/row_entries.h"

#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {

absl::StatusOr<RowEntries> RowEntries::Of(const IndexVersion& version) {
  RowEntries entries;
  entries.delta_ = version.delta.get();
  if (version.delta->positions != nullptr) {
    entries.positions_ = version.delta->positions;
  } else {
    ASSIGN_OR_RETURN(entries.positions_, version.base->Positions(Topology::Get().Threads(0)));
  }
  for (const DeltaPart& part : version.delta->parts) {
    entries.by_row_.push_back(part.segment->ByRow());
  }
  return entries;
}

void RowEntries::AppendPlaces(RowId row, Places* places) const {
  if (row < delta_->base_rows.rows()) {
    for (const Position p : (*positions_)[row]) {
      if (!delta_->removed.Contains(p)) places->push_back({0, p});
    }
  }
  for (size_t i = 0; i < by_row_.size(); ++i) {
    for (const uint64_t entry : DeltaSegment::OfRow(by_row_[i], row)) {
      const auto p = static_cast<Position>(entry);
      if (!delta_->parts[i].removed.Contains(p)) {
        places->push_back({static_cast<uint32_t>(i + 1), p});
      }
    }
  }
}

}  // namespace cairn
