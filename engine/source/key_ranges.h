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

// A part of the key space, [lower, upper).
struct KeySpan {
  std::string_view lower;
  std::string_view upper;
};

// The operations on keys that are needed to cut the key space.
class KeySpace {
 public:
  virtual ~KeySpace() = default;
  // Estimates the amount of data in each of the spans, in any unit. Wrong estimates make ranges
  // less even, but each key is still in exactly one range.
  virtual absl::StatusOr<std::vector<uint64_t>> Weigh(absl::Span<const KeySpan> spans) = 0;
  // Finds the last key less than `key` and the first key that is not; nullopt if there is none.
  virtual absl::Status FindNeighbours(std::string_view key, std::optional<std::string>* below,
                                      std::optional<std::string>* at_or_above) = 0;
};

// Returns a key about halfway between two others, read as big-endian fractions: lower < key <
// upper. Returns nullopt unless `lower` is less than `upper`, or if they are too close.
std::optional<std::string> KeyBetween(std::string_view lower, std::string_view upper);

// Cuts the key space into at most `parts` ranges of similar weight. The first one starts at the
// empty key, and the last one is open. `candidates`, in any order, are keys that are probably good
// cuts, such as file boundaries. Spans between them are halved until none is heavy. Errors:
// InvalidArgument if parts < 1; otherwise only errors of `keys`.
absl::StatusOr<std::vector<PrimaryKeyRange>> CutKeyRanges(std::vector<std::string> candidates,
                                                          int parts, KeySpace* keys);

}  // namespace cairn
