#include "engine/live/kept_snapshots.h"

#include <algorithm>
#include <new>

namespace cairn {

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
  kept_.reserve(kept_.size() + 1);
  // Under the lock, so that the follower does not pass the snapshot before it is in the list.
  auto snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
  const rocksdb::Snapshot* const taken = snapshot->snapshot();
  if (taken == nullptr) return nullptr;
  kept_.push_back({std::move(snapshot), false, {}});
  ++unreached_;
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
  const auto next =
      std::find_if(kept_.begin(), kept_.end(), [](const Kept& kept) { return !kept.reached; });
  return next == kept_.end() ? nullptr : next->snapshot;
}

std::shared_ptr<rocksdb::ManagedSnapshot> KeptSnapshots::Next() const {
  if (unreached_ == 0) return nullptr;
  const MutexLock lock(&mutex_);
  return NextLocked();
}

std::shared_ptr<rocksdb::ManagedSnapshot> KeptSnapshots::NextOrNew() const {
  const MutexLock lock(&mutex_);
  std::shared_ptr<rocksdb::ManagedSnapshot> next = NextLocked();
  return next != nullptr ? next : std::make_shared<rocksdb::ManagedSnapshot>(db_);
}

void KeptSnapshots::Reach(const rocksdb::ManagedSnapshot& snapshot, Versions versions) {
  const MutexLock lock(&mutex_);
  for (Kept& kept : kept_) {
    if (kept.snapshot.get() != &snapshot) continue;
    kept.reached = true;
    kept.versions = std::move(versions);
    --unreached_;
    return;
  }
}

void KeptSnapshots::Forget(const FollowedIndex& index) {
  std::vector<std::shared_ptr<const IndexVersion>> forgotten;  // destroyed without the lock
  const MutexLock lock(&mutex_);
  for (Kept& kept : kept_) {
    if (const auto at = kept.versions.find(&index); at != kept.versions.end()) {
      forgotten.push_back(std::move(at->second));
      kept.versions.erase(at);
    }
  }
}

void KeptSnapshots::ForgetAll() {
  std::vector<Versions> forgotten;
  const MutexLock lock(&mutex_);
  for (Kept& kept : kept_) forgotten.push_back(std::move(kept.versions));
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
