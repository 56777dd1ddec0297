#pragma once

#include <cstdint>

#include "index/layout/packed_leaves.h"

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

  // The same in all four lanes: one bit a slot, the lowest of which that is set is the first slot
  // whose key equals the low bits of `key`. A slot without an entry has the greatest key.
  __device__ uint32_t Equal(uint64_t key, int part) const {
    const uint32_t bits = OrOfQuad(EqualHere(key, part));
    if constexpr (kBits == 48) return bits & bits >> 8 & ((1u << kEntries) - 1);
    return bits;
  }
  // The same in all four lanes: how many slots' keys are less than the low bits of `key`.
  __device__ uint32_t CountLess(uint64_t key, int part) const {
    if constexpr (kBits == 48) {
      const uint32_t bits = OrOfQuad(Less48Here(key, part));
      return __popc((bits >> 8 | (bits >> 16 & bits)) & ((1u << kEntries) - 1));
    } else {
      uint32_t count = CountLessHere(key, part);
      count += __shfl_xor_sync(0xffffffffu, count, 1);
      return count + __shfl_xor_sync(0xffffffffu, count, 2);
    }
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

  static __device__ uint64_t Join(uint32_t low, uint32_t high) {
    return uint64_t{high} << 32 | low;
  }
  // What a lane's words are depends on its part, but all lanes do the same: they compare their
  // words as if all were keys, and Select says what of that counts.
  template <typename T>
  static __device__ T Select(int part, T in_first, T in_second, T in_third) {
    return part == 0 ? in_first : part == 1 ? in_second : part == 2 ? in_third : T{0};
  }

  // Bits 15 and 31, for the low and the high half of a word that equal those of `key`; the high
  // half may be told to be equal where the low one is.
  static __device__ uint32_t EqualHalves(uint32_t word, uint32_t key) {
    const uint32_t zero = word ^ key;
    return (zero - 0x00010001u) & ~zero & 0x80008000u;
  }
  // Bits 0 and 1, exactly.
  static __device__ uint32_t ExactHalves(uint32_t word, uint32_t half) {
    return ((word & 0xffff) == half ? 1 : 0) | (word >> 16 == half ? 2 : 0);
  }
  static __device__ uint32_t LessHalves(uint32_t word, uint32_t half) {
    return ((word & 0xffff) < half ? 1 : 0) | (word >> 16 < half ? 2 : 0);
  }

  // The bits of Equal that this lane's words give. For keys of 48 bits those of the low parts, and
  // eight bits above them those of the high parts.
  __device__ uint32_t EqualHere(uint64_t key, int part) const {
    const auto low = static_cast<uint32_t>(key);
    if constexpr (kBits == 16) {
      const uint32_t both = (low & 0xffff) * 0x00010001u;
      // The low halves' bits at 0, 2, 4, 6, the high ones' at 16, 18, 20, 22.
      const uint32_t apart = EqualHalves(words_.x, both) >> 15 | EqualHalves(words_.y, both) >> 13 |
                             EqualHalves(words_.z, both) >> 11 | EqualHalves(words_.w, both) >> 9;
      const uint32_t bits = (apart | apart >> 15) & 0xff;
      return Select(part, bits, (bits & 3) << 8, 0u);
    } else if constexpr (kBits == 64) {
      const uint32_t two =
          (Join(words_.x, words_.y) == key ? 1 : 0) | (Join(words_.z, words_.w) == key ? 2 : 0);
      return Select(part, two, two << 2, (two & 1) << 4);
    } else {
      const uint32_t two = (words_.x == low ? 1 : 0) | (words_.y == low ? 2 : 0);
      const uint32_t four = two | (words_.z == low ? 4 : 0) | (words_.w == low ? 8 : 0);
      if constexpr (kBits == 32) return Select(part, four, (four & 7) << 4, 0u);
      const auto half = static_cast<uint32_t>(key >> 32) & 0xffff;
      const uint32_t high =
          Select(part, 0u, ExactHalves(words_.z, half) | ExactHalves(words_.w, half) << 2,
                 ExactHalves(words_.x, half) << 4);
      return Select(part, four, two << 4, 0u) | high << 8;
    }
  }

  __device__ uint32_t CountLessHere(uint64_t key, int part) const {
    const auto low = static_cast<uint32_t>(key);
    if constexpr (kBits == 16) {
      // A word is less than the key above sixteen zeros just if its high half is less.
      const uint32_t top = low << 16;
      const auto count = [top](uint32_t word) {
        return (word < top ? 1u : 0u) + (word << 16 < top ? 1u : 0u);
      };
      const uint32_t first = count(words_.x);
      return Select(part, first + count(words_.y) + count(words_.z) + count(words_.w), first, 0u);
    } else if constexpr (kBits == 32) {
      const uint32_t three =
          (words_.x < low ? 1u : 0u) + (words_.y < low ? 1u : 0u) + (words_.z < low ? 1u : 0u);
      return Select(part, three + (words_.w < low ? 1u : 0u), three, 0u);
    } else {
      const uint32_t first = Join(words_.x, words_.y) < key ? 1 : 0;
      const uint32_t two = first + (Join(words_.z, words_.w) < key ? 1u : 0u);
      return Select(part, two, two, first);
    }
  }
  // For keys of 48 bits, a bit a slot: from bit 0 on whether the low part is less, from bit 8 on
  // whether the high part is, from bit 16 on whether that is equal.
  __device__ uint32_t Less48Here(uint64_t key, int part) const {
    const auto low = static_cast<uint32_t>(key);
    const auto half = static_cast<uint32_t>(key >> 32) & 0xffff;
    const uint32_t two = (words_.x < low ? 1 : 0) | (words_.y < low ? 2 : 0);
    const uint32_t four = two | (words_.z < low ? 4 : 0) | (words_.w < low ? 8 : 0);
    const uint32_t less =
        Select(part, 0u, LessHalves(words_.z, half) | LessHalves(words_.w, half) << 2,
               LessHalves(words_.x, half) << 4);
    const uint32_t equal =
        Select(part, 0u, ExactHalves(words_.z, half) | ExactHalves(words_.w, half) << 2,
               ExactHalves(words_.x, half) << 4);
    return Select(part, four, two << 4, 0u) | less << 8 | equal << 16;
  }

  uint4 words_;
};

}  // namespace cairn::gpu
