#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/types.h"

namespace cairn {

// A set of rows, a bit each. Not thread-safe while it changes. What allocates throws
// std::bad_alloc.
class RowBitmap {
 public:
  RowBitmap() = default;
  explicit RowBitmap(uint64_t rows) : rows_(rows), words_((rows + 63) / 64) {}

  void Add(RowId row) { words_[row / 64] |= uint64_t{1} << (row % 64); }
  void Remove(RowId row) { words_[row / 64] &= ~(uint64_t{1} << (row % 64)); }
  bool Contains(RowId row) const { return (words_[row / 64] >> (row % 64) & 1) != 0; }

  void And(const RowBitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  void Or(const RowBitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // This becomes what `other`, of as many rows, has and this has not.
  void SubtractFrom(const RowBitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] = other.words_[i] & ~words_[i];
  }
  void Complement() {
    for (uint64_t& word : words_) word = ~word;
    if (rows_ % 64 != 0) words_.back() &= (uint64_t{1} << (rows_ % 64)) - 1;
  }

  uint64_t Count() const {
    uint64_t count = 0;
    for (const uint64_t word : words_) count += static_cast<uint64_t>(std::popcount(word));
    return count;
  }
  // Appends all rows, ascending.
  void AppendTo(std::vector<RowId>* rows) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        rows->push_back(static_cast<RowId>(i * 64 + static_cast<size_t>(std::countr_zero(word))));
      }
    }
  }

 private:
  uint64_t rows_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace cairn
