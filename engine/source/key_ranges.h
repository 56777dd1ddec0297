#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// A stretch of the key space, [lower, upper).
struct KeySpan {
  std::string_view lower;
  std::string_view upper;
};

// What cutting the key space needs to know of the keys in it.
class KeySpace {
 public:
  virtual ~KeySpace() = default;
  // Estimates how much lies in each of the spans, in any one unit. It may be wrong: ranges are then
  // less even, but still hold every key once.
  virtual absl::StatusOr<std::vector<uint64_t>> Weigh(absl::Span<const KeySpan> spans) = 0;
  // The last key below `key`, and the first one that is not; empty where there is none.
  virtual absl::Status FindNeighbours(std::string_view key, std::optional<std::string>* below,
                                      std::optional<std::string>* at_or_above) = 0;
};

// A key about halfway between two, read as big-endian fractions: lower < key < upper. Nothing where
// `lower` is not below `upper`, or they are too close.
std::optional<std::string> KeyBetween(std::string_view lower, std::string_view upper);

// Cuts the key space into at most `parts` ranges of similar weight, of which the first starts at
// the empty key and the last is open. `candidates`, in any order, are keys that are likely to be
// good cuts (file boundaries); spans between them are halved until none weighs much.
// InvalidArgument where parts < 1; else only errors of `keys`.
absl::StatusOr<std::vector<PrimaryKeyRange>> CutKeyRanges(std::vector<std::string> candidates,
                                                          int parts, KeySpace* keys);

}  // namespace cairn
