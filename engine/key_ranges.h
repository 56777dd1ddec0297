#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// A stretch of the key space, [lower, upper).
struct KeySpan {
  std::string_view lower;
  std::string_view upper;
};

// Estimates how much lies in each of the spans, in any one unit. It may be wrong: ranges are then
// less even, but still hold every key once.
using WeighKeys =
    std::function<absl::StatusOr<std::vector<uint64_t>>(absl::Span<const KeySpan> spans)>;

// A key about halfway between two, read as big-endian fractions: lower < key < upper. Nothing where
// `lower` is not below `upper`, or only `lower` followed by zeros lies between them.
std::optional<std::string> KeyBetween(std::string_view lower, std::string_view upper);

// Cuts the key space into at most `parts` ranges of similar weight, of which the first starts at
// the empty key and the last is open. `first` and `last` are the outermost keys that exist;
// `candidates`, in any order, are keys that are likely to be good cuts (file boundaries); where
// they are too few, spans are halved until none weighs much. InvalidArgument where parts < 1; else
// only errors of `weigh`.
absl::StatusOr<std::vector<PrimaryKeyRange>> CutKeyRanges(std::string_view first,
                                                          std::string_view last,
                                                          std::vector<std::string> candidates,
                                                          int parts, const WeighKeys& weigh);

}  // namespace cairn
