#include "engine/where/group_member.h"

#include <algorithm>
#include <utility>

#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {

bool MayHaveSeveralKeys(const IndexSpec& spec) {
  return std::any_of(spec.parts.begin(), spec.parts.end(), [](const KeyPart& part) {
    return part.source.kind == KeySource::Kind::kJson ||
           part.source.kind == KeySource::Kind::kCustom;
  });
}

GroupMember::GroupMember(std::string name, std::shared_ptr<const IndexVersion> version,
                         size_t shard, size_t shards, bool shares_rows)
    : name_(std::move(name)),
      version_(std::move(version)),
      shard_(shard),
      shards_(shards),
      shares_rows_(shares_rows) {}

absl::Status GroupMember::Prepare() const {
  const MutexLock lock(&mutex_);
  if (is_prepared_) return absl::OkStatus();
  if (delta().positions != nullptr) {
    positions_ = delta().positions;
  } else {
    ASSIGN_OR_RETURN(positions_, version_->base->Positions(Topology::Get().Threads(0)));
  }
  std::vector<absl::Span<const uint64_t>> by_row;
  for (const DeltaPart& part : delta().parts) by_row.push_back(part.segment->ByRow());
  by_row_ = std::move(by_row);
  // What came since is not looked at for rows with several entries where rows may have them.
  const bool base_is_single = !positions_->single().empty() || delta().base_run.empty();
  is_single_ = base_is_single && (delta().empty() || !MayHaveSeveralKeys(version_->spec()));
  is_prepared_ = true;
  return absl::OkStatus();
}

GroupMember::Entries GroupMember::Look(RowId row, const EntrySet& set) const {
  Entries found;
  const Delta& delta = this->delta();
  if (row < delta.base_rows.rows()) {
    for (const Position p : (*positions_)[row]) {
      if (delta.removed.Contains(p)) continue;
      found.any = true;
      found.in_set |= set.Contains(0, p);
    }
    if (found.in_set || (found.any && is_single_)) return found;
  }
  for (size_t i = 0; i < by_row_.size(); ++i) {
    for (const uint64_t entry : DeltaSegment::OfRow(by_row_[i], row)) {
      const auto p = static_cast<Position>(entry);
      if (delta.parts[i].removed.Contains(p)) continue;
      found.any = true;
      found.in_set |= set.Contains(i + 1, p);
    }
  }
  return found;
}

void GroupMember::AppendPlaces(RowId row, absl::InlinedVector<Place, 4>* places) const {
  const Delta& delta = this->delta();
  if (row < delta.base_rows.rows()) {
    for (const Position p : (*positions_)[row]) {
      if (!delta.removed.Contains(p)) places->push_back({0, p});
    }
  }
  for (size_t i = 0; i < by_row_.size(); ++i) {
    for (const uint64_t entry : DeltaSegment::OfRow(by_row_[i], row)) {
      const auto p = static_cast<Position>(entry);
      if (!delta.parts[i].removed.Contains(p)) {
        places->push_back({static_cast<uint32_t>(i + 1), p});
      }
    }
  }
}

const std::vector<RowId>& GroupMember::ChangedRows() const {
  const MutexLock lock(&mutex_);
  if (changed_rows_ == nullptr) {
    auto rows = std::make_unique<std::vector<RowId>>();
    const Delta& delta = this->delta();
    const uint64_t end = delta.base_run.size();
    for (uint64_t p = delta.removed.FirstMember(0, end); p < end;
         p = delta.removed.FirstMember(p + 1, end)) {
      rows->push_back(delta.base_run.row_ids()[p]);
    }
    for (const DeltaPart& part : delta.parts) {
      rows->insert(rows->end(), part.segment->rows().begin(), part.segment->rows().end());
    }
    std::sort(rows->begin(), rows->end());
    rows->erase(std::unique(rows->begin(), rows->end()), rows->end());
    changed_rows_ = std::move(rows);
  }
  return *changed_rows_;
}

}  // namespace cairn
