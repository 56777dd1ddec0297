#include "engine/shard_build/source_range.h"

#include <algorithm>

#include "index/machine/status_macros.h"

namespace cairn {

absl::StatusOr<std::vector<PrimaryKeyRange>> SourceRange::Split(int parts) const {
  // The source cuts all of itself; those cuts that are within the range are its own.
  ASSIGN_OR_RETURN(const std::vector<PrimaryKeyRange> all, source_.Split(parts));
  std::vector<PrimaryKeyRange> within;
  for (PrimaryKeyRange part : all) {
    part.lower = std::max(part.lower, range_.lower);
    if (!range_.open && (part.open || range_.upper < part.upper)) {
      part.upper = range_.upper;
      part.open = false;
    }
    if (part.open || part.lower < part.upper) within.push_back(std::move(part));
  }
  // An empty range has one part, as any has.
  if (within.empty()) within.push_back({range_.lower, range_.lower, false});
  return within;
}

}  // namespace cairn
