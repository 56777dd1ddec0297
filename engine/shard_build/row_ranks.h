#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"

namespace cairn {

// Some rows of a segment, and their ranks among them: an id in a shard that has only these. Marked
// by any number of threads; then, once Count has been called, read by any. A bit a row and a
// sixteenth of that.
class RowRanks {
 public:
  // Throws std::bad_alloc.
  explicit RowRanks(uint64_t rows)
      : rows_(rows), words_((rows + 63) / 64), before_(words_.size() / kWordsPerBlock + 1) {}

  uint64_t rows() const { return rows_; }
  // Requires row < rows().
  void Mark(RowId row) {
    words_[row / 64].fetch_or(uint64_t{1} << (row % 64), std::memory_order_relaxed);
  }

  // Counts what is marked; `first` is the rank of the first row. Returns the rank behind the last.
  uint64_t Count(uint64_t first) {
    for (size_t w = 0; w < words_.size(); ++w) {
      if (w % kWordsPerBlock == 0) before_[w / kWordsPerBlock] = first;
      first += static_cast<uint64_t>(std::popcount(Word(w)));
    }
    return first;
  }
  // The rank of a marked row.
  RowId Rank(RowId row) const {
    const size_t word = row / 64;
    uint64_t rank = before_[word / kWordsPerBlock];
    for (size_t w = word / kWordsPerBlock * kWordsPerBlock; w < word; ++w) {
      rank += static_cast<uint64_t>(std::popcount(Word(w)));
    }
    rank += static_cast<uint64_t>(std::popcount(Word(word) & ((uint64_t{1} << (row % 64)) - 1)));
    return static_cast<RowId>(rank);
  }
  // Appends the marked rows among [begin, end).
  void Append(uint64_t begin, uint64_t end, std::vector<RowId>* marked) const {
    for (uint64_t row = begin; row < end; row = (row / 64 + 1) * 64) {
      uint64_t word = Word(row / 64) >> (row % 64);
      for (uint64_t at = row; word != 0; ++at, word >>= 1) {
        const auto skip = static_cast<uint64_t>(std::countr_zero(word));
        at += skip;
        word >>= skip;
        if (at >= end) return;
        marked->push_back(static_cast<RowId>(at));
      }
    }
  }

 private:
  static constexpr size_t kWordsPerBlock = 16;

  uint64_t Word(size_t w) const { return words_[w].load(std::memory_order_relaxed); }

  uint64_t rows_;
  std::vector<std::atomic<uint64_t>> words_;
  std::vector<uint64_t> before_;  // the rank of the first row of each block
};

}  // namespace cairn
