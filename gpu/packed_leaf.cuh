#pragma once

#include <cstdint>

#include "index/packed_leaves.h"

namespace cairn::gpu {

// A packed leaf in the registers of four neighbouring lanes, sixteen bytes each: lane `part` of
// them holds words 4 * part … 4 * part + 3. The four must call everything together.
template <int kBits>
class LeafQuad {
 public:
  using Layout = LeafLayout<kBits>;
  static constexpr int kLanes = 4;
  static constexpr int kEntries = static_cast<int>(Layout::kEntries);
  static constexpr int kPositionWord = static_cast<int>(Layout::kPositionOffset) / 4;
  static constexpr int kRowWord = static_cast<int>(Layout::kRowsOffset) / 4;

  // Leaves are read once each, so they must not push what is read often out of the first cache.
  __device__ void Load(const Leaf* leaf, int part) {
    const uint4* from = reinterpret_cast<const uint4*>(leaf) + part;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(words_.x), "=r"(words_.y), "=r"(words_.z), "=r"(words_.w)
        : "l"(from));
  }

  // One bit a slot, the same in all four lanes: which slots' keys equal the low bits of `key`, or
  // are less. A slot without an entry has the greatest key.
  __device__ uint32_t Equal(uint64_t key, int part) const {
    return Finish<false>(OrOfQuad(Compare<false>(key, part)));
  }
  __device__ uint32_t Less(uint64_t key, int part) const {
    return Finish<true>(OrOfQuad(Compare<true>(key, part)));
  }

  // Whether the leaf is continued in another (FillLeaves).
  __device__ bool HasLink(int part) const {
    uint32_t zero = 0;
    if constexpr (kBits == 16) {
      zero = part == 1 && words_.x >> 16 == 0 ? 3 : 0;
    } else if constexpr (kBits == 32) {
      zero = part == 1 && words_.z == 0 ? 3 : 0;
    } else if constexpr (kBits == 48) {
      zero = part == 1 && words_.y == 0 ? 1 : part == 2 && words_.x >> 16 == 0 ? 2 : 0;
    } else {
      zero = part == 2 && (words_.x | words_.y) == 0 ? 3 : 0;
    }
    return OrOfQuad(zero) == 3;
  }
  // The leaf that it goes on in.
  __device__ uint32_t Link() const { return FromPart<kRowWord + kEntries - 1>(); }

  // The position of the first entry; in the lane for which this is true.
  static __device__ bool HoldsPosition(int part) { return part == kPositionWord / 4; }
  __device__ Position position() const { return Word<kPositionWord % 4>(); }

  // The same, in all four lanes.
  __device__ Position PositionInAll() const { return FromPart<kPositionWord>(); }

  // Calls row(slot, row_id) for the entries whose row ids this lane holds, without the link of a
  // leaf that has one.
  template <typename Row>
  __device__ void ForEachRow(int part, bool linked, Row row) const {
    const uint32_t words[4] = {words_.x, words_.y, words_.z, words_.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int slot = 4 * part + i - kRowWord;
      const bool there = slot >= 0 && slot < (linked ? kEntries - 1 : kEntries);
      if (there && words[i] != kNoRow) row(slot, words[i]);
    }
  }

  // The row id of a slot; in the lane for which this is true.
  static __device__ bool HoldsRow(int slot, int part) {
    return (kRowWord + slot) / 4 == part;
  }
  __device__ RowId row_id(int slot) const {
    const int word = (kRowWord + slot) % 4;
    const uint32_t even = word == 0 ? words_.x : words_.z, odd = word == 1 ? words_.y : words_.w;
    return word % 2 == 0 ? even : odd;
  }

 private:
  static __device__ uint32_t OrOfQuad(uint32_t bits) {
    bits |= __shfl_xor_sync(0xffffffffu, bits, 1);
    return bits | __shfl_xor_sync(0xffffffffu, bits, 2);
  }
  template <int kWord>
  __device__ uint32_t Word() const {
    return kWord == 0 ? words_.x : kWord == 1 ? words_.y : kWord == 2 ? words_.z : words_.w;
  }
  // Word `kWord` of the sixteen.
  template <int kWord>
  __device__ uint32_t FromPart() const {
    return __shfl_sync(0xffffffffu, Word<kWord % 4>(), kWord / 4, kLanes);
  }

  // Bit 0 for the low half of a word, bit 1 for the high one.
  template <bool kLess>
  static __device__ uint32_t CompareHalves(uint32_t word, uint32_t key) {
    const uint32_t low = word & 0xffff, high = word >> 16;
    return kLess ? (low < key ? 1 : 0) | (high < key ? 2 : 0)
                 : (low == key ? 1 : 0) | (high == key ? 2 : 0);
  }
  template <bool kLess, typename T>
  static __device__ uint32_t CompareOne(T word, T key) {
    return (kLess ? word < key : word == key) ? 1 : 0;
  }
  static __device__ uint64_t Join(uint32_t low, uint32_t high) {
    return uint64_t{high} << 32 | low;
  }

  // What this lane's words tell; Finish makes a bit a slot of all that the four tell. Keys of 48
  // bits: their low parts from bit 0 on, their high parts from bit 8 on, and where they are to be
  // less, whether the high parts are equal from bit 16 on.
  template <bool kLess>
  __device__ uint32_t Compare(uint64_t key, int part) const {
    const uint32_t low = static_cast<uint32_t>(key);
    if constexpr (kBits == 16) {
      const uint32_t half = low & 0xffff;
      const uint32_t first = CompareHalves<kLess>(words_.x, half);
      const uint32_t rest = CompareHalves<kLess>(words_.y, half) << 2 |
                            CompareHalves<kLess>(words_.z, half) << 4 |
                            CompareHalves<kLess>(words_.w, half) << 6;
      return part == 0 ? first | rest : part == 1 ? first << 8 : 0;
    } else if constexpr (kBits == 32) {
      const uint32_t three = CompareOne<kLess>(words_.x, low) |
                             CompareOne<kLess>(words_.y, low) << 1 |
                             CompareOne<kLess>(words_.z, low) << 2;
      return part == 0 ? three | CompareOne<kLess>(words_.w, low) << 3 : part == 1 ? three << 4 : 0;
    } else if constexpr (kBits == 48) {
      const uint32_t half = static_cast<uint32_t>(key >> 32) & 0xffff;
      const uint32_t two = CompareOne<kLess>(words_.x, low) | CompareOne<kLess>(words_.y, low) << 1;
      if (part == 0) {
        return two | CompareOne<kLess>(words_.z, low) << 2 | CompareOne<kLess>(words_.w, low) << 3;
      }
      if (part == 1) {
        const auto high = [&](auto compare) { return compare(words_.z) | compare(words_.w) << 2; };
        return two << 4 | HighParts<kLess>(high, half, 8);
      }
      if (part == 2) {
        return HighParts<kLess>([&](auto compare) { return compare(words_.x); }, half, 12);
      }
      return 0;
    } else {
      const uint32_t first = CompareOne<kLess>(Join(words_.x, words_.y), key);
      const uint32_t second = CompareOne<kLess>(Join(words_.z, words_.w), key);
      return part == 0   ? first | second << 1
             : part == 1 ? first << 2 | second << 3
             : part == 2 ? first << 4
                         : 0;
    }
  }
  // words(compare) compares all high parts that a lane has, whose first bit is `bit`.
  template <bool kLess, typename Words>
  static __device__ uint32_t HighParts(Words words, uint32_t half, int bit) {
    const auto equal = [=](uint32_t word) { return CompareHalves<false>(word, half); };
    const auto less = [=](uint32_t word) { return CompareHalves<true>(word, half); };
    return kLess ? words(less) << bit | words(equal) << (bit + 8) : words(equal) << bit;
  }
  template <bool kLess>
  static __device__ uint32_t Finish(uint32_t bits) {
    if constexpr (kBits != 48) return bits;
    constexpr uint32_t kSlots = (1u << kEntries) - 1;
    const uint32_t low = bits & kSlots, high = bits >> 8 & kSlots;
    return kLess ? high | (bits >> 16 & low) : high & low;
  }

  uint4 words_;
};

}  // namespace cairn::gpu
