#include "engine/live/kept_snapshots.h"

#include <algorithm>
#include <new>

#include "absl/cleanup/cleanup.h"

namespace cairn {
namespace {

// Takes versions from the list without memory, and destroys them without the lock.
using Forgotten = std::multimap<const FollowedIndex*, std::shared_ptr<const IndexVersion>>;

}  // namespace

KeptSnapshots::~KeptSnapshots() {
  // The database may be gone, so the snapshots cannot be released here. If their owners do not
  // release them either, their memory is lost, as it is with RocksDB alone.
  const MutexLock lock(&mutex_);
  for (Kept& kept : kept_) {
    new (std::nothrow) std::shared_ptr<rocksdb::ManagedSnapshot>(std::move(kept.snapshot));
  }
}

const rocksdb::Snapshot* KeptSnapshots::Take() {
  const MutexLock lock(&mutex_);
  kept_.emplace_back();
  ++unreached_;
  absl::Cleanup undo = [this] {
    mutex_.AssertHeld();
    kept_.pop_back();
    --unreached_;
  };
  auto snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
  const rocksdb::Snapshot* const taken = snapshot->snapshot();
  if (taken == nullptr) return nullptr;
  std::move(undo).Cancel();
  kept_.back().snapshot = std::move(snapshot);
  return taken;
}

bool KeptSnapshots::Release(const rocksdb::Snapshot* snapshot) {
  Kept released;  // destroyed without the lock
  const MutexLock lock(&mutex_);
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.snapshot->snapshot() == snapshot;
  });
  if (at == kept_.end()) return false;
  if (!at->reached) --unreached_;
  released = std::move(*at);
  kept_.erase(at);
  return true;
}

std::shared_ptr<rocksdb::ManagedSnapshot> KeptSnapshots::NextLocked() const {
  const auto next = std::partition_point(kept_.begin(), kept_.end(),
                                         [](const Kept& kept) { return kept.reached; });
  return next == kept_.end() ? nullptr : next->snapshot;
}

std::shared_ptr<rocksdb::ManagedSnapshot> KeptSnapshots::Next() const {
  if (unreached_ == 0) return nullptr;
  const MutexLock lock(&mutex_);
  return NextLocked();
}

std::shared_ptr<rocksdb::ManagedSnapshot> KeptSnapshots::NextOrNew(SequenceNumber sequence) const {
  const MutexLock lock(&mutex_);
  std::shared_ptr<rocksdb::ManagedSnapshot> next = NextLocked();
  if (next != nullptr && next->snapshot()->GetSequenceNumber() >= sequence) return next;
  return std::make_shared<rocksdb::ManagedSnapshot>(db_);
}

void KeptSnapshots::Reach(const rocksdb::ManagedSnapshot& snapshot, Versions versions) noexcept {
  const MutexLock lock(&mutex_);
  for (Kept& kept : kept_) {
    if (kept.snapshot.get() != &snapshot) continue;
    kept.reached = true;
    kept.versions = std::move(versions);
    --unreached_;
    return;
  }
}

void KeptSnapshots::Forget(const FollowedIndex& index) noexcept {
  Forgotten forgotten;
  const MutexLock lock(&mutex_);
  for (Kept& kept : kept_) forgotten.insert(kept.versions.extract(&index));
}

void KeptSnapshots::ForgetAll() noexcept {
  Forgotten forgotten;
  const MutexLock lock(&mutex_);
  for (Kept& kept : kept_) forgotten.merge(kept.versions);
}

KeptSnapshots::Found KeptSnapshots::Find(const rocksdb::Snapshot* snapshot,
                                         const FollowedIndex& index) const {
  const MutexLock lock(&mutex_);
  for (const Kept& kept : kept_) {
    if (kept.snapshot->snapshot() != snapshot) continue;
    const auto version = kept.versions.find(&index);
    return {kept.snapshot, kept.reached,
            version == kept.versions.end() ? nullptr : version->second};
  }
  return {};
}

}  // namespace cairn
