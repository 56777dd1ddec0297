// The states of the indexes at the snapshots that callers hold.

#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/live/log_follower.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {

absl::StatusOr<LogFollower::State> LogFollower::StateAt(const FollowedIndex& index,
                                                        const rocksdb::Snapshot* snapshot,
                                                        const StopCondition& stop) {
  RETURN_IF_ERROR(stop.Check());
  HeedDoubt();
  RETURN_IF_ERROR(index.Ready().status());
  // Before the version is found, so that a rebuild in between is noticed by comparing the writer.
  std::shared_ptr<IndexWriter> writer = index.writer();
  KeptSnapshots::Found found = snapshots_.Find(snapshot, index);
  if (found.snapshot != nullptr && !found.reached) {
    RETURN_IF_ERROR(FollowUpTo(found.snapshot->snapshot()->GetSequenceNumber(), stop));
    writer = index.writer();
    found = snapshots_.Find(snapshot, index);
  }
  if (found.snapshot == nullptr) {
    return absl::InvalidArgumentError(
        "the snapshot is not from GetSnapshot of this IndexedDB, or has been released");
  }
  State state{std::move(writer), std::move(found.version), std::move(found.snapshot)};
  RETURN_IF_ERROR(index.Ready().status());
  if (state.version != nullptr) return state;
  return absl::FailedPreconditionError(
      absl::StrFormat("index %s has no state at the snapshot of sequence number %d: it was not "
                      "ready then, or it has been rebuilt since",
                      Quoted(index.name()), state.snapshot->snapshot()->GetSequenceNumber()));
}

void LogFollower::KeepVersions() {
  while (const auto snapshot = snapshots_.Next()) {
    const SequenceNumber sequence = snapshot->snapshot()->GetSequenceNumber();
    if (tail_ != nullptr && tail_->sequence() < sequence) return;
    KeptSnapshots::Versions versions;
    const absl::Status taken = Guarded("keeping versions for a snapshot", [&] {
      mutex_.AssertHeld();
      for (const Member& member : members_) {
        std::shared_ptr<const IndexVersion> version = member.index->writer()->version();
        if (version->sequence == sequence) versions[member.index.get()] = std::move(version);
      }
      return absl::OkStatus();
    });
    if (!taken.ok()) versions.clear();
    snapshots_.Reach(*snapshot, std::move(versions));
  }
}

}  // namespace cairn
