#include "engine/where/group_member.h"

#include <algorithm>
#include <utility>

#include "engine/version/distinct_rows.h"
#include "index/machine/status_macros.h"

namespace cairn {

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
  ASSIGN_OR_RETURN(RowEntries entries, RowEntries::Of(*version_));
  entries_.emplace(std::move(entries));
  // Changes are not checked for rows with several entries if the spec allows such rows.
  const bool base_is_single = !positions().single().empty() || delta().base_run.empty();
  is_single_ = base_is_single && (delta().empty() || !MayHaveSeveralKeys(version_->spec()));
  is_prepared_ = true;
  return absl::OkStatus();
}

GroupMember::Entries GroupMember::Look(RowId row, const EntrySet& set) const {
  Entries found;
  const Delta& delta = this->delta();
  if (row < delta.base_rows.rows()) {
    for (const Position p : positions()[row]) {
      if (delta.removed.Contains(p)) continue;
      found.any = true;
      found.in_set |= set.Contains(0, p);
    }
    if (found.in_set || (found.any && is_single_)) return found;
  }
  for (size_t i = 0; i < delta.parts.size(); ++i) {
    for (const uint64_t entry : DeltaSegment::OfRow(entries_->by_row(i), row)) {
      const auto p = static_cast<Position>(entry);
      if (delta.parts[i].removed.Contains(p)) continue;
      found.any = true;
      found.in_set |= set.Contains(i + 1, p);
    }
  }
  return found;
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
