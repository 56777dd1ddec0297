#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "gpu/layout/text_number.h"
#include "gpu/run/key_survey.h"

namespace cairn::gpu {

// The numbers of the keys of a run of byte strings (gpu/layout/text_number.h).
class TextCode {
 public:
  // Bytes of a key at most.
  static constexpr size_t kMaxPositions = 64;

  // Reads all keys, on up to `threads` threads. None where a key is longer, or 128 bits do not hold
  // the numbers. Throws std::bad_alloc.
  static std::optional<TextCode> Of(const BytesColumn& keys, int threads);

  // Whether the numbers are the keys' bytes (NumberOfBytes).
  bool is_plain() const;
  // Whether 64 bits hold the numbers.
  bool is_narrow() const { return narrow_; }
  absl::Span<const TextPosition> positions() const { return positions_; }

  // For QuickNumberOfText: the products, in two words each, low one first, then the shares. Empty
  // where a word's product is too great.
  absl::Span<const uint32_t> shares() const { return shares_; }
  // Bytes of the shortest key.
  uint32_t shortest() const { return shortest_; }
  // Bytes of both tables.
  uint64_t table_bytes() const {
    return positions_.size() * sizeof(TextPosition) + shares_.size() * sizeof(uint32_t);
  }

  // Key holds the numbers.
  template <typename Key>
  TextNumber<Key> Number(std::string_view key, TextEdge edge = TextEdge::kLower) const;

  // The numbers of keys[first] and those behind it, to all of `numbers`; false where the code is
  // not of one of them.
  template <typename Key>
  bool Number(const BytesColumn& keys, size_t first, absl::Span<Key> numbers) const;

 private:
  void MakeShares();

  std::vector<TextPosition> positions_;
  std::vector<uint32_t> shares_;
  uint32_t shortest_ = 0;
  bool narrow_ = true;
};

// Surveys the numbers of keys, of which there must be some, that the code is of, and that ascend.
template <typename Key>
KeySurvey<Key> SurveyNumbers(const TextCode& code, const BytesColumn& keys, int threads);

}  // namespace cairn::gpu
