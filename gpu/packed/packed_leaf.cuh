#pragma once

#include <cstdint>

#include "index/layout/packed_leaves.h"

namespace cairn::gpu {

template <int kBits>
class LeafLine;

// A packed leaf in the registers of four adjacent lanes, sixteen bytes each: lane `part` holds
// words 4 * part … 4 * part + 3. All four lanes must make each call together.
template <int kBits>
class LeafQuad {
 public:
  using Layout = LeafLayout<kBits>;
  using Key = typename Layout::Key;
  static constexpr int kLanes = 4;
  static constexpr int kEntries = static_cast<int>(Layout::kEntries);
  static constexpr int kPositionWord = static_cast<int>(Layout::kPositionOffset) / 4;
  static constexpr int kRowWord = static_cast<int>(Layout::kRowsOffset) / 4;

  // Bypasses the first-level cache: leaves are read once, and must not evict data that is read
  // often.
  __device__ void Load(const Leaf* leaves, uint32_t leaf, int part) {
    // One multiplication; the compiler would add the part to each leaf's address.
    asm("{ .reg .u64 from;\n"
        "mad.wide.u32 from, %4, 64, %5;\n"
        "ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [from]; }"
        : "=r"(words_.x), "=r"(words_.y), "=r"(words_.z), "=r"(words_.w)
        : "r"(leaf), "l"(reinterpret_cast<const uint4*>(leaves) + part));
  }

  // A lane's contribution to the result for the leaf. The sum over the four lanes is the argument
  // of EqualOf or LessOf; for LinkPart it is 3 if the leaf has a link.
  __device__ uint32_t EqualPart(Key key, int part) const { return EqualIn(words_, key, part); }
  __device__ uint32_t LessPart(Key key, int part) const { return LessIn(words_, key, part); }
  __device__ uint32_t LinkPart(int part) const { return LinkIn(words_, part); }
  // One bit per slot. The lowest set bit is the first slot whose key equals the low bits of the
  // key. A slot without an entry has the maximum key.
  static __device__ uint32_t EqualOf(uint32_t sum) {
    if constexpr (kBits == 48) return sum & sum >> 8 & ((1u << kEntries) - 1);
    return sum;
  }
  // The number of slots whose keys are less than the low bits of the key.
  static __device__ uint32_t LessOf(uint32_t sum) {
    if constexpr (kBits == 48) {
      return __popc((sum >> 8 | (sum >> 16 & sum)) & ((1u << kEntries) - 1));
    }
    return sum;
  }

  // One bit per slot that has an entry or a link, and whose key equals the low bits of `key`; the
  // same in all four lanes.
  __device__ uint32_t AllEqual(Key key, int part) const {
    return EqualOf(OrOfQuad(EqualIn(words_, key, part))) & OrOfQuad(FilledIn(words_, part));
  }

  // Whether the leaf is continued in another leaf (FillLeaves).
  __device__ bool HasLink(int part) const { return OrOfQuad(LinkIn(words_, part)) == 3; }
  // The leaf that continues this one.
  __device__ uint32_t Link() const { return FromPart<kRowWord + kEntries - 1>(); }

  // The position of the first entry; the same in all four lanes.
  __device__ Position PositionInAll() const { return FromPart<kPositionWord>(); }

  // Calls row(slot, row_id) for the entries whose row ids this lane holds, without the link if the
  // leaf has one.
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

  // The word of the row id of the lowest of `slots`, one bit per slot; undefined if there is none.
  static __device__ uint32_t RowWord(uint32_t slots) {
    return kRowWord + static_cast<uint32_t>(__clz(static_cast<int>(__brev(slots))));
  }
  // Word `i` of the sixteen, in all four lanes.
  __device__ uint32_t WordInAll(uint32_t i) const {
    const uint32_t low = i & 1 ? words_.y : words_.x, high = i & 1 ? words_.w : words_.z;
    return __shfl_sync(0xffffffffu, i & 2 ? high : low, static_cast<int>(i / 4), kLanes);
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

  friend class LeafLine<kBits>;

  static __device__ uint32_t FilledIn(const uint4& words, int part) {
    const uint32_t four[4] = {words.x, words.y, words.z, words.w};
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int slot = 4 * part + i - kRowWord;
      if (slot >= 0 && slot < kEntries && four[i] != kNoRow) bits |= 1u << slot;
    }
    return bits;
  }
  // The parts' bits add up to 3 if the leaf has a link.
  static __device__ uint32_t LinkIn(const uint4& words, int part) {
    if constexpr (kBits == 16) return part == 1 && words.x >> 16 == 0 ? 3 : 0;
    if constexpr (kBits == 32) return part == 1 && words.z == 0 ? 3 : 0;
    if constexpr (kBits == 48) {
      return part == 1 && words.y == 0 ? 1 : part == 2 && words.x >> 16 == 0 ? 2 : 0;
    }
    if constexpr (kBits == 64) return part == 2 && (words.x | words.y) == 0 ? 3 : 0;
    return part == 2 && (words.x | words.y | words.z | words.w) == 0 ? 3 : 0;
  }

  static __device__ uint64_t Join(uint32_t low, uint32_t high) {
    return uint64_t{high} << 32 | low;
  }
  static __device__ WideKey JoinAll(const uint4& words) {
    return WideKey{Join(words.z, words.w)} << 64 | Join(words.x, words.y);
  }
  // The meaning of a lane's words depends on its part, but all lanes execute the same code: they
  // compare their words as if all were keys, and Select picks the valid part of the result.
  template <typename T>
  static __device__ T Select(int part, T in_first, T in_second, T in_third) {
    return part == 0 ? in_first : part == 1 ? in_second : part == 2 ? in_third : T{0};
  }

  // Sets bit 0 or 16 if the low or high half of a word differs from that of `key`.
  static __device__ uint32_t OtherHalves(uint32_t word, uint32_t key) {
    const uint32_t other = word ^ key;
#if __CUDA_ARCH__ >= 900
    return __vminu2(other, 0x00010001u);
#else
    return (((other & 0x7fff7fffu) + 0x7fff7fffu) | other) >> 15 & 0x00010001u;
#endif
  }

  // A lane's bits for EqualOf, one per slot. For 48-bit keys, bit i compares the low 32 bits of
  // slot i, and bit 8 + i the high 16 bits.
  static __device__ uint32_t EqualIn(const uint4& words, Key key, int part) {
    const auto low = static_cast<uint32_t>(key);
    if constexpr (kBits == 16) {
      const uint32_t both = __byte_perm(low, 0, 0x1010);
      // The low halves' bits are at 0, 2, 4, 6, the high halves' at 16, 18, 20, 22.
      const uint32_t apart = OtherHalves(words.x, both) + (OtherHalves(words.y, both) << 2) +
                             (OtherHalves(words.z, both) << 4) + (OtherHalves(words.w, both) << 6);
      const uint32_t bits = ~(apart | apart >> 15) & 0xff;
      return Select(part, bits, (bits & 3) << 8, 0u);
    } else if constexpr (kBits == 64) {
      const uint32_t two =
          (Join(words.x, words.y) == key ? 1 : 0) | (Join(words.z, words.w) == key ? 2 : 0);
      return Select(part, two, two << 2, (two & 1) << 4);
    } else if constexpr (kBits == 128) {
      return part < kEntries && JoinAll(words) == key ? 1u << part : 0;
    } else {
      const uint32_t two = (words.x == low ? 1 : 0) | (words.y == low ? 2 : 0);
      const uint32_t four = two | (words.z == low ? 4 : 0) | (words.w == low ? 8 : 0);
      if constexpr (kBits == 32) return Select(part, four, (four & 7) << 4, 0u);
      const uint32_t both = __byte_perm(static_cast<uint32_t>(key >> 32), 0, 0x1010);
      const uint32_t apart = part == 1
                                 ? OtherHalves(words.z, both) + (OtherHalves(words.w, both) << 2)
                                 : OtherHalves(words.x, both) << 4;
      const uint32_t high = ~(apart | apart >> 15) & Select(part, 0u, 0x0fu, 0x30u);
      return Select(part, four, two << 4, 0u) | high << 8;
    }
  }

  static __device__ uint32_t LessIn(const uint4& words, Key key, int part) {
    const auto low = static_cast<uint32_t>(key);
    if constexpr (kBits == 48) {
      return Less48In(words, key, part);
    } else if constexpr (kBits == 16) {
      // A word is less than the key shifted up by 16 if and only if its high half is less than the
      // key.
      const uint32_t top = low << 16;
      const auto count = [top](uint32_t word) {
        return (word < top ? 1u : 0u) + (word << 16 < top ? 1u : 0u);
      };
      const uint32_t first = count(words.x);
      return Select(part, first + count(words.y) + count(words.z) + count(words.w), first, 0u);
    } else if constexpr (kBits == 32) {
      const uint32_t three =
          (words.x < low ? 1u : 0u) + (words.y < low ? 1u : 0u) + (words.z < low ? 1u : 0u);
      return Select(part, three + (words.w < low ? 1u : 0u), three, 0u);
    } else if constexpr (kBits == 128) {
      return part < kEntries && JoinAll(words) < key ? 1 : 0;
    } else {
      const uint32_t first = Join(words.x, words.y) < key ? 1 : 0;
      const uint32_t two = first + (Join(words.z, words.w) < key ? 1u : 0u);
      return Select(part, two, two, first);
    }
  }
  // For 48-bit keys, one bit per slot: from bit 0 on, whether the low part is less; from bit 8 on,
  // whether the high part is less; from bit 16 on, whether the high part is equal.
  static __device__ uint32_t Less48In(const uint4& words, Key key, int part) {
    const auto low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
    const uint32_t two = (words.x < low ? 1 : 0) | (words.y < low ? 2 : 0);
    const uint32_t four = two | (words.z < low ? 4 : 0) | (words.w < low ? 8 : 0);
    // The high parts are in the second part's last words and the third part's first.
    const uint32_t first = part == 1 ? words.z : words.x, second = words.w;
    const uint32_t top = high << 16;
    const uint32_t less = (first << 16 < top ? 1 : 0) | (first < top ? 2 : 0) |
                          (second << 16 < top ? 4 : 0) | (second < top ? 8 : 0);
    const uint32_t both = __byte_perm(high, 0, 0x1010);
    const uint32_t apart = OtherHalves(first, both) + (OtherHalves(second, both) << 2);
    const uint32_t equal = ~(apart | apart >> 15) & 0xf;
    const uint32_t highs = less << 8 | equal << 16;
    return Select(part, four, two << 4 | highs, (highs & 0x030300u) << 4);
  }

  uint4 words_;
};

// A packed leaf that one lane reads, with its keys in registers. Used for sorted queries: the lanes
// of a warp then read the same or neighboring leaves. So the first-level cache already has the
// words that the next lane reads, and those that this lane reads later from the same leaf.
template <int kBits>
class LeafLine {
 public:
  using Quad = LeafQuad<kBits>;
  using Key = typename Quad::Key;

  __device__ void Load(const Leaf* leaf) {
    words_ = reinterpret_cast<const uint32_t*>(leaf);
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) parts_[part] = PartOf(part);
  }
  // Like LeafQuad's.
  __device__ uint32_t Equal(Key key) const {
    uint32_t bits = 0;
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) bits |= Quad::EqualIn(parts_[part], key, part);
    return Quad::EqualOf(bits);
  }
  __device__ uint32_t CountLess(Key key) const {
    uint32_t sum = 0;
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) sum += Quad::LessIn(parts_[part], key, part);
    return Quad::LessOf(sum);
  }
  __device__ uint32_t AllEqual(Key key) const {
    uint32_t bits = 0, filled = 0;
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) {
      bits |= Quad::EqualIn(parts_[part], key, part);
    }
#pragma unroll
    for (int part = Quad::kRowWord / 4; part < Quad::kLanes; ++part) {
      filled |= Quad::FilledIn(PartOf(part), part);
    }
    return Quad::EqualOf(bits) & filled;
  }
  __device__ bool HasLink() const {
    uint32_t bits = 0;
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part) bits |= Quad::LinkIn(parts_[part], part);
    return bits == 3;
  }
  __device__ uint32_t Link() const {
    return row_id(Quad::kEntries - 1);
  }
  __device__ Position position() const {
    constexpr int kWord = Quad::kPositionWord;
    if constexpr (kWord / 4 < kKeyParts) {
      const uint4& part = parts_[kWord / 4];
      return kWord % 4 == 1 ? part.y : kWord % 4 == 2 ? part.z : part.w;
    } else {
      return __ldg(words_ + kWord);
    }
  }
  // The row id of a slot, or kNoRow for slot -1.
  __device__ RowId row_id(int slot) const {
    return slot < 0 ? kNoRow : __ldg(words_ + Quad::kRowWord + slot);
  }

 private:
  // Parts that hold keys; the position's word is never the first of a part.
  static constexpr int kKeyParts = (Quad::kPositionWord + 3) / 4;
  static_assert(Quad::kPositionWord % 4 != 0 || Quad::kPositionWord / 4 == kKeyParts);

  __device__ uint4 PartOf(int part) const {
    return __ldg(reinterpret_cast<const uint4*>(words_) + part);
  }

  const uint32_t* words_;
  uint4 parts_[kKeyParts];
};

}  // namespace cairn::gpu
