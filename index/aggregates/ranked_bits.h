#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/machine/prefetch.h"

namespace cairn {

// A bit vector with rank: the number of set bits before a position takes one read of a cache line.
// Immutable and thread-safe after Finish. Takes a quarter of a byte per bit.
class RankedBits {
 public:
  RankedBits() = default;
  // All bits are 0. Throws std::bad_alloc.
  explicit RankedBits(uint64_t bits) : words_(bits / 64 + 1) {}

  // Sets bits [64 * i, 64 * i + 64). Several threads may set different words.
  void SetWord(uint64_t i, uint64_t bits) { words_[i].bits = bits; }
  // Computes the counts, after all bits are set.
  void Finish() {
    uint64_t rank = 0;
    for (Word& word : words_) {
      word.rank = rank;
      rank += static_cast<uint64_t>(std::popcount(word.bits));
    }
  }

  // The number of set bits before bit i; requires that i be at most the number of bits.
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
    uint64_t rank = 0;  // set bits in the words before this one
  };
  // one more than the bits need, so that Rank(number of bits) reads a word
  std::vector<Word> words_;
};

}  // namespace cairn
