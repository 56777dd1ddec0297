#include "engine/live/background_work.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// A failed merge is tried again after IndexedDBOptions::compact_interval, then after twice that
// time, and so on up to this limit.
constexpr absl::Duration kLongestMergeWait = absl::Minutes(1);
// The longest time between two looks at the log of a database without writes. A write through the
// object ends the wait.
constexpr absl::Duration kIdleInterval = absl::Milliseconds(160);
// How often to check whether the log has grown too much.
constexpr absl::Duration kLogInterval = absl::Seconds(1);
// The time within which a column family that was dropped past the object is noticed. IndexedDB
// documents this value.
constexpr absl::Duration kFamiliesLatency = absl::Milliseconds(10);

}  // namespace

void BackgroundWork::Start() {
  following_ = std::make_unique<Periodically>(options_.follow_interval, kIdleInterval,
                                              [this] { return FollowChanges(); });
  keeping_ = std::make_unique<Periodically>(kLogInterval, [this] { KeepLogShort(); });
  watching_ = std::make_unique<ManifestWatch>(db_, kFamiliesLatency,
                                              [this] { return follower_->CheckFamilies(); });
  storing_ =
      std::make_unique<Periodically>(options_.flush_interval, [this] { StoreAll().IgnoreError(); });
  merging_ = std::make_unique<Periodically>(options_.compact_interval, [this] { MergeWhatPays(); });
}

void BackgroundWork::Stop() {
  if (following_ != nullptr) following_->End();
  keeping_ = nullptr;
  watching_ = nullptr;
  storing_ = nullptr;
  merging_ = nullptr;
}

void BackgroundWork::Follow() {
  if (follower_->Follow().ok()) retention_->Release(follower_->log_number());
}

bool BackgroundWork::FollowChanges() {
  const absl::StatusOr<SequenceNumber> latest = follower_->Latest();
  Follow();
  return latest.ok() && std::exchange(followed_, *latest) != *latest;
}

void BackgroundWork::KeepLogShort() {
  for (auto index = indexes_.After(nullptr); index != nullptr; index = indexes_.After(&*index)) {
    index->RetryMark();
  }
  // Needed if nothing else follows the log for a long time.
  if (retention_->CheckBounds()) Follow();
  follower_->CloseLogFile();
  views_->DropUnused();
}

absl::Status BackgroundWork::StoreAll() {
  absl::Status first;
  for (const auto& index : indexes_.All()) {
    if (!index->Ready().ok()) continue;  // other work on it may take long
    const MutexLock lock(index->work_mutex());
    if (!follower_->Current(*index).ok()) continue;
    first.Update(Store(index.get()));
  }
  return first;
}

absl::Status BackgroundWork::Store(FollowedIndex* index) {
  const absl::Time begin = absl::Now();
  absl::Status s = index->writer()->Store();
  index->NoteStore(s, absl::Now() - begin);
  return s;
}

absl::Status BackgroundWork::Compact(FollowedIndex* index) {
  RETURN_IF_ERROR(index->Ready().status());
  const MutexLock lock(index->work_mutex());
  RETURN_IF_ERROR(index->Ready().status());
  CompactOptions options;
  options.threads = options_.compact_threads > 0 ? options_.compact_threads
                                                 : std::max(1, Topology::Get().cores() / 2);
  options.max_bytes_per_second = options_.compact_bytes_per_second;
  options.cancelled = &index->cancelled();
  const absl::Time begin = absl::Now();
  absl::Status s = index->writer()->Compact(options);
  index->NoteMerge(s, absl::Now() - begin);
  return s;
}

absl::Status BackgroundWork::Tidy(FollowedIndex* index) {
  const MutexLock lock(index->work_mutex());
  RETURN_IF_ERROR(index->Ready().status());
  return index->writer()->Tidy();
}

void BackgroundWork::MergeWhatPays() {
  for (const auto& index : indexes_.All()) {
    const auto ready = index->Ready();
    FollowedIndex::MergeRetry& retry = index->merge_retry;
    if (!ready.ok() || absl::Now() < retry.due) continue;
    if (((*ready)->ShouldCompact() ? Compact(index.get()) : Tidy(index.get())).ok()) {
      retry = {};
    } else {
      // On a full disk, each attempt would write until it fails.
      retry.wait = std::min(std::max(2 * retry.wait, options_.compact_interval), kLongestMergeWait);
      retry.due = absl::Now() + retry.wait;
    }
  }
}

}  // namespace cairn
