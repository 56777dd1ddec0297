// The column families of a LogFollower: those that are dropped, and slices of their changes.

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/live/followed_index.h"
#include "engine/live/log_follower.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Gives up an index whose column family was dropped; returns the reason.
absl::Status FamilyIsGone(FollowedIndex* index) {
  absl::Status why = absl::FailedPreconditionError(FamilyWasDropped(index->spec().column_family));
  index->Distrust(std::string(why.message()));
  index->Cancel();
  index->GiveUp(why);
  return why;
}

}  // namespace

absl::Status LogFollower::CheckFamilies() {
  absl::StatusOr<std::map<uint32_t, std::string>> live;
  {
    const std::shared_lock<std::shared_mutex> use(use_mutex_);
    if (closed_) return absl::OkStatus();
    live = LiveFamilies();
  }
  if (absl::IsDataLoss(live.status())) {
    // A drop would not be noticed. Until the MANIFEST can be read, no index joins again.
    const MutexLock lock(&mutex_);
    FailAll(live.status());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(live.status());
  bool skipped = false;
  const auto is_gone = [&](const Member& member) {
    if (live->contains(member.index->column_family_id())) return false;
    const bool suspended = member.index->is_suspended();
    skipped |= suspended;
    return !suspended;
  };
  const MutexLock lock(&mutex_);
  if (closed_) return absl::OkStatus();
  if (std::any_of(members_.begin(), members_.end(), is_gone)) {
    live = LiveFamilies();  // a member with a newer family may have joined since
    RETURN_IF_ERROR(live.status());
    LoseThose(is_gone, [](const Member& member) { return FamilyIsGone(member.index.get()); });
  }
  return skipped ? absl::UnavailableError("a suspended index was skipped") : absl::OkStatus();
}

absl::StatusOr<uint32_t> LogFollower::FamilyId(const std::string& name) {
  const std::shared_lock<std::shared_mutex> use(use_mutex_);
  if (closed_) return absl::FailedPreconditionError("the database has been closed");
  ASSIGN_OR_RETURN(const auto live, LiveFamilies());
  const auto found = std::find_if(live.begin(), live.end(),
                                  [&](const auto& family) { return family.second == name; });
  return found == live.end() ? UINT32_MAX : found->first;
}

absl::Status LogFollower::CheckFamilies(Updates* updates) {
  if (tail_->newest_family() <= newest_family_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto live, LiveFamilies());
  newest_family_ = tail_->newest_family();
  for (size_t i = 0; i < members_.size(); ++i) {
    FollowedIndex& index = *members_[i].index;
    if (updates->of_member[i] == nullptr || live.contains(index.column_family_id())) continue;
    updates->of_member[i] = nullptr;
    updates->status[i] = FamilyIsGone(&index);
  }
  return absl::OkStatus();
}

absl::Status LogFollower::LoseThoseOfGoneFamilies(std::vector<Member>* admitted) {
  ASSIGN_OR_RETURN(const auto live, LiveFamilies());
  std::erase_if(*admitted, [&](const Member& member) {
    if (live.contains(member.index->column_family_id())) return false;
    *member.joining = FamilyIsGone(member.index.get());
    return true;
  });
  return absl::OkStatus();
}

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
