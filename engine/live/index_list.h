#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "engine/live/followed_index.h"
#include "index/keys/escaped_text.h"
#include "index/machine/mutex.h"

namespace cairn {

// The indexes of one database, by name. Thread-safe.
class IndexList {
 public:
  using Indexes = std::vector<std::shared_ptr<FollowedIndex>>;

  explicit IndexList(std::string database) : database_(std::move(database)) {}

  absl::StatusOr<std::shared_ptr<FollowedIndex>> Find(const std::string& name) const {
    const MutexLock lock(&mutex_);
    const auto found = indexes_.find(name);
    if (found != indexes_.end()) return found->second;
    return absl::NotFoundError(
        absl::StrFormat("database '%s' has no index %s", database_, Quoted(name)));
  }
  Indexes All() const {
    const MutexLock lock(&mutex_);
    Indexes all;
    for (const auto& [name, index] : indexes_) all.push_back(index);
    return all;
  }
  // Returns the index after `index` by name; the first one for null, and null at the end. Unlike
  // All, it takes no memory.
  std::shared_ptr<FollowedIndex> After(const FollowedIndex* index) const {
    const MutexLock lock(&mutex_);
    const auto next = index == nullptr ? indexes_.begin() : indexes_.upper_bound(index->name());
    return next == indexes_.end() ? nullptr : next->second;
  }
  void Add(const std::shared_ptr<FollowedIndex>& index) {
    const MutexLock lock(&mutex_);
    indexes_[index->name()] = index;
  }
  void Remove(const std::string& name) {
    const MutexLock lock(&mutex_);
    indexes_.erase(name);
  }

 private:
  const std::string database_;  // for messages
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<FollowedIndex>> indexes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
