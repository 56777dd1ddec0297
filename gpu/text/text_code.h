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

// Encodes the keys of a run of byte strings as integers (gpu/layout/text_number.h).
class TextCode {
 public:
  // Maximum bytes of a key.
  static constexpr size_t kMaxPositions = 64;

  // Reads all keys, on up to `threads` threads. Returns nullopt if a key is longer, or if the
  // numbers do not fit 128 bits. Throws std::bad_alloc.
  static std::optional<TextCode> Of(const BytesColumn& keys, int threads);

  // Whether the numbers are the keys' bytes (NumberOfBytes).
  bool is_plain() const;
  // Whether the numbers fit 64 bits.
  bool is_narrow() const { return narrow_; }
  absl::Span<const TextPosition> positions() const { return positions_; }

  // For QuickNumberOfText: the products, in two words each, low word first, then the shares. Empty
  // if a word's product is too large.
  absl::Span<const uint32_t> shares() const { return shares_; }
  // Length of the shortest key in bytes.
  uint32_t shortest() const { return shortest_; }
  // Bytes of both tables.
  uint64_t table_bytes() const {
    return positions_.size() * sizeof(TextPosition) + shares_.size() * sizeof(uint32_t);
  }

  // Requires that Key can hold the numbers.
  template <typename Key>
  TextNumber<Key> Number(std::string_view key, TextEdge edge = TextEdge::kLower) const;

  // Fills `numbers` with the numbers of the keys from keys[first] on. Returns false if the code
  // does not cover one of them.
  template <typename Key>
  bool Number(const BytesColumn& keys, size_t first, absl::Span<Key> numbers) const;

 private:
  void MakeShares();

  std::vector<TextPosition> positions_;
  std::vector<uint32_t> shares_;
  uint32_t shortest_ = 0;
  bool narrow_ = true;
};

// Surveys the numbers of the keys. Requires at least one key, that the code covers all keys, and
// that they ascend.
template <typename Key>
KeySurvey<Key> SurveyNumbers(const TextCode& code, const BytesColumn& keys, int threads);

}  // namespace cairn::gpu
