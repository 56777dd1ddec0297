#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/index_group.h"
#include "engine/where/index_group.h"
#include "index/machine/mutex.h"

namespace cairn {

// Recently pinned groups, by the names of their indexes. The next group of the same indexes reuses
// what is known about their rows, so that it costs only the changes. A group and its versions are
// kept until the next group of the same names, or of kMax others. Thread-safe.
class PinnedGroups {
 public:
  // If not `keep`, the group is not kept, as it is of an older state.
  absl::StatusOr<std::shared_ptr<const IndexGroup>> Create(absl::Span<const std::string> names,
                                                           std::vector<IndexGroup::Member> members,
                                                           bool keep) {
    std::vector<std::string> key(names.begin(), names.end());
    std::shared_ptr<const IndexGroup> before;
    {
      const MutexLock lock(&mutex_);
      for (const Pinned& pinned : pinned_) {
        if (pinned.names == key) before = pinned.group;
      }
    }
    absl::StatusOr<std::shared_ptr<const IndexGroup>> group =
        CreateIndexGroup(std::move(members), before);
    if (!group.ok() || !keep) return group;
    std::vector<Pinned> gone;  // destroyed without the lock
    const MutexLock lock(&mutex_);
    auto at = std::find_if(pinned_.begin(), pinned_.end(),
                           [&](const Pinned& pinned) { return pinned.names == key; });
    if (at == pinned_.end() && pinned_.size() == kMax) at = pinned_.begin();
    if (at != pinned_.end()) {
      gone.push_back(std::move(*at));
      pinned_.erase(at);
    }
    pinned_.push_back({std::move(key), *group});
    return group;
  }
  // Releases all groups.
  void Clear() {
    std::vector<Pinned> gone;
    const MutexLock lock(&mutex_);
    gone.swap(pinned_);
  }

 private:
  static constexpr size_t kMax = 8;

  struct Pinned {
    std::vector<std::string> names;
    std::shared_ptr<const IndexGroup> group;
  };

  Mutex mutex_;
  std::vector<Pinned> pinned_ ABSL_GUARDED_BY(mutex_);  // most recent last
};

}  // namespace cairn
