#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/where/index_group.h"
#include "engine/version/index_version.h"

namespace cairn {

// IndexGroup::Create, taking over from `after`, a group or null, what rows of the same indexes it
// has found.
absl::StatusOr<std::shared_ptr<const IndexGroup>> CreateIndexGroup(
    std::vector<IndexGroup::Member> members, const std::shared_ptr<const IndexGroup>& after);

}  // namespace cairn
