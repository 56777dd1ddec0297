#pragma once

#include <memory>

#include "cairn/secondary_index.h"
#include "engine/live/followed_index.h"
#include "engine/live/log_follower.h"

namespace cairn {

// An index of an IndexedDB, in any state. Each query sees everything that was committed before it
// began. Thread-safe.
std::shared_ptr<const SecondaryIndex> LiveIndex(std::shared_ptr<const FollowedIndex> index,
                                                std::shared_ptr<LogFollower> follower);

}  // namespace cairn
