#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// What a batch asks of each key; both are answered with 32 bits.
enum class Answer : uint8_t { kPosition, kFirstRow };

inline absl::Status AnswerBatch(const OrderedIndex& index, Answer answer, KeyBatch keys,
                                absl::Span<uint32_t> out) {
  return answer == Answer::kPosition ? index.LowerBound(keys, out) : index.FindFirst(keys, out);
}

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
