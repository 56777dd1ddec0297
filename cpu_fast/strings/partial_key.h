#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "index/strings/key_bits.h"

namespace cairn {

// A key from which partial keys are extracted: at least eight bytes, zero-padded past its end if
// needed.
struct PaddedKey {
  const char* data;
  size_t last;  // offset of the last eight bytes
};

// Selects the bits of a key that form its partial key: a small integer that orders keys as far as
// these bits distinguish them. The bits are in two windows of eight bytes, the first before the
// second.
//
// This is the order-preserving partial key of Kim et al. (FAST, SIGMOD 2010, section 6.1), a
// non-contiguous prefix of the key, with a granularity of one bit.
struct PartialKeyBits {
  uint32_t offset[2] = {0, 0};  // of the windows, in bytes
  uint64_t mask[2] = {0, 0};    // selected bits of each window, read as a big-endian integer
};

// The eight bytes of the key at `offset` as a big-endian integer.
inline uint64_t PartialKeyWindow(const PaddedKey& key, size_t offset) {
  const size_t start = std::min(offset, key.last);
  const size_t missing = 8 * (offset - start);
  const uint64_t word = LoadBigEndian(key.data + start);
  return missing < 64 ? word << missing : 0;
}

// PEXT for processors without it, or with a slow one.
inline uint64_t GatherBits(uint64_t word, uint64_t mask) {
  uint64_t gathered = 0;
  for (uint64_t place = 1; mask != 0; mask &= mask - 1, place <<= 1) {
    if ((word & mask & (0 - mask)) != 0) gathered |= place;
  }
  return gathered;
}

// The partial key, given the bits gathered from each window.
inline uint32_t JoinPartialKey(const PartialKeyBits& bits, uint64_t first, uint64_t second) {
  return static_cast<uint32_t>(first << __builtin_popcountll(bits.mask[1]) | second);
}

inline uint32_t PartialKeyOf(const PartialKeyBits& bits, const PaddedKey& key) {
  return JoinPartialKey(bits, GatherBits(PartialKeyWindow(key, bits.offset[0]), bits.mask[0]),
                        GatherBits(PartialKeyWindow(key, bits.offset[1]), bits.mask[1]));
}

// The first bits of a key, extended with zeros or ones: the minimum or maximum key with this
// prefix.
struct KeyPrefix {
  uint64_t bits;  // number of bits
  bool ones;
};

// The number of selected bits at or after position `bit`.
inline int PartialKeyBitsFrom(const PartialKeyBits& bits, uint64_t bit) {
  int count = 0;
  for (int w = 0; w < 2; ++w) {
    const uint64_t start = uint64_t{bits.offset[w]} * 8;
    const uint64_t within = bit < start ? 0 : bit - start;
    if (within < 64) count += __builtin_popcountll(bits.mask[w] & UINT64_MAX >> within);
  }
  return count;
}

// Turns the partial key of a key into that of its prefix.
inline uint32_t PartialKeyOfPrefix(const PartialKeyBits& bits, uint32_t partial_key,
                                   const KeyPrefix& prefix) {
  const uint32_t filled = (uint32_t{1} << PartialKeyBitsFrom(bits, prefix.bits)) - 1;
  return prefix.ones ? partial_key | filled : partial_key & ~filled;
}

// A growing set of bits from which partial keys can be formed.
class PartialKeyBitSet {
 public:
  // At most `most` bits; `most` must be less than 32.
  explicit PartialKeyBitSet(size_t most) : most_(most) {}

  // Adds a bit; it may already be in the set. Returns false and leaves the set unchanged if there
  // would be too many bits or if two windows could not hold them.
  bool Add(uint32_t bit);
  size_t size() const { return size_; }
  const PartialKeyBits& bits() const { return bits_; }
  // The value that a bit of the set has in a partial key.
  uint32_t Place(uint32_t bit) const { return uint32_t{1} << (PartialKeyBitsFrom(bits_, bit) - 1); }

 private:
  static constexpr size_t kMax = 32;

  size_t most_;
  size_t size_ = 0;
  uint32_t sorted_[kMax];  // ascending
  PartialKeyBits bits_;    // the same bits as windows
};

}  // namespace cairn
