// Slices of changes: where they come from, and their memory.

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "engine/live/log_follower.h"
#include "index/machine/status_macros.h"

namespace cairn {

absl::Status LogFollower::ReadSlice(SequenceNumber until, size_t max_bytes,
                                    const rocksdb::Snapshot* snapshot) {
  const SequenceNumber start = tail_->sequence();
  SequenceNumber next = 0;
  for (bool awaited = false;; awaited = true) {
    // All writes up to `until` have been published. Those that had not ended here may be missing
    // below.
    const bool may_come = unlogged().any_in_progress();
    next = unlogged().Next(start);
    if (next == start + 1) break;
    const SequenceNumber logged = std::min(until, next - 1);
    if (may_come && tail_->ReadAvailable(logged, max_bytes, absl::MakeSpan(changes_))) {
      return absl::OkStatus();
    }
    if (may_come && !awaited) {
      unlogged().Await(start + 1);
      continue;
    }
    return tail_->Read(logged, max_bytes, absl::MakeSpan(changes_), snapshot);
  }
  batches_.clear();
  unlogged().Get(start, until, max_bytes, &batches_);
  absl::Status read = tail_->ReadUnlogged(batches_, until, absl::MakeSpan(changes_));
  batches_.clear();
  return read;
}

void LogFollower::GiveBackMemory(size_t family) {
  families_[family].settled = SettledChanges();
  changes_[family] = RowChanges();
  for (Member& member : members_) {
    if (member.index->column_family_id() != families_[family].handle->GetID()) continue;
    *member.updates = RowUpdates(member.updates->keys.kind());
    absl::StatusOr<ChangeExtractor> extractor = ChangeExtractor::Create(member.index->spec());
    if (extractor.ok()) *member.extractor = *std::move(extractor);
  }
}

}  // namespace cairn
