#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/machine/prefetch.h"

namespace cairn {

// Bits, and how many are set before any of them: one line of cache for each question. Immutable
// once Finish has been called; then thread-safe. Takes a quarter of a byte a bit.
class RankedBits {
 public:
  RankedBits() = default;
  // All 0. Throws std::bad_alloc.
  explicit RankedBits(uint64_t bits) : words_(bits / 64 + 1) {}

  // Sets bits [64 * i, 64 * i + 64); different ones by any threads.
  void SetWord(uint64_t i, uint64_t bits) { words_[i].bits = bits; }
  // Counts, once all bits are set.
  void Finish() {
    uint64_t rank = 0;
    for (Word& word : words_) {
      word.rank = rank;
      rank += static_cast<uint64_t>(std::popcount(word.bits));
    }
  }

  // The number of bits before bit i that are set; requires that i be at most the number of bits.
  uint64_t Rank(uint64_t i) const {
    const Word& word = words_[i / 64];
    return word.rank +
           static_cast<uint64_t>(std::popcount(word.bits & ((uint64_t{1} << i % 64) - 1)));
  }
  void PrefetchRank(uint64_t i) const { Prefetch(&words_[i / 64]); }

  uint64_t memory_bytes() const { return words_.capacity() * sizeof(Word); }

 private:
  struct Word {
    uint64_t bits = 0;
    uint64_t rank = 0;  // set bits of the words before
  };
  std::vector<Word> words_;  // one more than the bits need, so that Rank(all) has one
};

}  // namespace cairn
