#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// What a batch asks of each key.
enum class PointQuery : uint8_t {
  kLowerBound,
  kUpperBound,
  kFindFirst,
  kContains,
  kEqualRange,  // the positions of all its entries
};

// Where a batch's answers go. A view that owns nothing; one of the spans, or two, are as long as
// the batch, the others empty.
struct Answers {
  PointQuery query;
  absl::Span<uint32_t> values = {};  // positions, or row ids; of kEqualRange the beginnings
  absl::Span<Position> ends = {};    // kEqualRange only
  absl::Span<bool> found = {};       // kContains only

  // Those of the `count` keys from `first` on.
  Answers Slice(size_t first, size_t count) const;
  // Copies answer i to place slots[i] of `to`, whose query is the same.
  void Scatter(absl::Span<const uint32_t> slots, const Answers& to) const;
};

// Answers the batch through the index, as it is. As many answers as keys.
absl::Status AnswerBatch(const OrderedIndex& index, KeyBatch keys, const Answers& answers);

inline KeyBatch BatchOf(absl::Span<const uint32_t> keys) {
  return KeyBatch::U32(keys);
}
inline KeyBatch BatchOf(absl::Span<const uint64_t> keys) {
  return KeyBatch::U64(keys);
}
inline KeyBatch BatchOf(absl::Span<const std::string_view> keys) {
  return KeyBatch::Bytes(keys);
}

}  // namespace cairn
