#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "gpu/layout/unroll.h"
#include "index/layout/wide_key.h"

namespace cairn {

// The data that a leaf stores in addition to its keys.
enum class AggregateKind : uint8_t {
  kCounts,      // nothing
  kSums32,      // 32-bit values, and the sum of all values before the leaf
  kSums64,      // 64-bit values, and their sum, which has 96 bits
  kExtremes32,  // 32-bit values, and the minimum of the group's values before and after the leaf
  kExtremes64,  // 64-bit values, and the same minimums
  kFloatSums,   // doubles, and the sums of the group's values before and after the leaf
};

constexpr bool HasSums(AggregateKind kind) {
  return kind == AggregateKind::kSums32 || kind == AggregateKind::kSums64;
}
// Whether groups of leaves have summaries: for minimums and for sums of floats.
constexpr bool HasGroups(AggregateKind kind) {
  return kind >= AggregateKind::kExtremes32;
}

// The value of a key.
template <AggregateKind kKind>
using AggregateValue = std::conditional_t<
    kKind == AggregateKind::kFloatSums, double,
    std::conditional_t<kKind == AggregateKind::kSums64 || kKind == AggregateKind::kExtremes64,
                       uint64_t, uint32_t>>;
// A sum of such values.
template <AggregateKind kKind>
using AggregateSum = std::conditional_t<kKind == AggregateKind::kSums64, WideKey, uint64_t>;

// 32-bit words of a value, and of the summary that a leaf stores of values outside it.
constexpr int AggregateValueWords(AggregateKind kind) {
  if (kind == AggregateKind::kCounts) return 0;
  return kind == AggregateKind::kSums32 || kind == AggregateKind::kExtremes32 ? 1 : 2;
}
constexpr int AggregateOutsideWords(AggregateKind kind) {
  if (kind == AggregateKind::kSums32) return 2;
  if (kind == AggregateKind::kSums64) return 3;
  return HasGroups(kind) ? 2 * AggregateValueWords(kind) : 0;
}

inline constexpr int kAggregateLeafWords = 16;

// Entries of a leaf that keeps the low `key_bytes` bytes of keys: 2, 4 or 8.
constexpr int AggregateLeafEntries(AggregateKind kind, int key_bytes) {
  const int bytes = 4 * (kAggregateLeafWords - 2 - AggregateOutsideWords(kind));
  return bytes / (key_bytes + 4 * AggregateValueWords(kind));
}

// A leaf of 64 bytes, fetched by one memory read:
//
//   keys      kEntries x kKeyBytes   ascending; all ones for missing entries
//   position  4 bytes                of the first entry among the distinct keys
//   link      4 bytes                the leaf that continues this one; 0: none
//   outside                          depends on the kind
//   values    kEntries values of the kind
//
// A leaf that is continued has kEntries - 1 entries.
template <AggregateKind kKind, int kKeyBytes>
class AggregateLeaf {
 public:
  using Value = AggregateValue<kKind>;
  using Sum = AggregateSum<kKind>;
  static constexpr int kEntries = AggregateLeafEntries(kKind, kKeyBytes);
  static constexpr int kKeyWords = (kEntries * kKeyBytes + 3) / 4;
  static constexpr int kPositionWord = kKeyWords;
  static constexpr int kLinkWord = kPositionWord + 1;
  static constexpr int kOutsideWord = kLinkWord + 1;
  static constexpr int kValueWords = AggregateValueWords(kKind);
  static constexpr int kValuesWord = kOutsideWord + AggregateOutsideWords(kKind);
  static_assert(kValuesWord + kEntries * kValueWords <= kAggregateLeafWords);

  uint32_t words[kAggregateLeafWords];

  // Makes this a leaf without entries; `nothing` is the value of slots without an entry.
  constexpr void Clear(uint32_t position, uint32_t link, Value nothing) {
    CAIRN_UNROLL
    for (int i = 0; i < kAggregateLeafWords; ++i) words[i] = i < kKeyWords ? UINT32_MAX : 0;
    words[kPositionWord] = position;
    words[kLinkWord] = link;
    CAIRN_UNROLL
    for (int slot = 0; slot < kEntries; ++slot) SetValue(slot, nothing);
  }
  constexpr void SetKey(int slot, uint64_t key) {
    if constexpr (kKeyBytes == 2) {
      const int shift = 16 * (slot % 2);
      uint32_t& word = words[slot / 2];
      word = (word & ~(uint32_t{0xffff} << shift)) | static_cast<uint32_t>(key & 0xffff) << shift;
    } else if constexpr (kKeyBytes == 4) {
      words[slot] = static_cast<uint32_t>(key);
    } else {
      SetWide(2 * slot, key);
    }
  }
  constexpr void SetValue(int slot, Value value) {
    if constexpr (kValueWords != 0) SetAny(kValuesWord + slot * kValueWords, value);
  }
  constexpr void SetSumBefore(Sum sum) {
    SetWide(kOutsideWord, static_cast<uint64_t>(sum));
    if constexpr (kKind == AggregateKind::kSums64) {
      words[kOutsideWord + 2] = static_cast<uint32_t>(sum >> 64);
    }
  }
  constexpr void SetBeforeAndBehind(Value before, Value behind) {
    SetAny(kOutsideWord, before);
    SetAny(kOutsideWord + kValueWords, behind);
  }

  constexpr uint32_t position() const { return words[kPositionWord]; }
  constexpr uint32_t link() const { return words[kLinkWord]; }
  // The number of slots whose keys are less than the low bytes of `key`.
  constexpr int CountLess(uint64_t key) const {
    int count = 0;
    if constexpr (kKeyBytes == 2) {
      // Compares two keys per word: a word is less than the key shifted up by 16 if and only if its
      // high half is less than the key.
      const uint32_t top = static_cast<uint32_t>(key) << 16;
      CAIRN_UNROLL
      for (int i = 0; i < kEntries / 2; ++i) {
        count += (words[i] < top ? 1 : 0) + (words[i] << 16 < top ? 1 : 0);
      }
      if constexpr (kEntries % 2 != 0) count += words[kEntries / 2] << 16 < top ? 1 : 0;
    } else if constexpr (kKeyBytes == 4) {
      CAIRN_UNROLL
      for (int i = 0; i < kEntries; ++i) count += words[i] < static_cast<uint32_t>(key) ? 1 : 0;
    } else {
      CAIRN_UNROLL
      for (int i = 0; i < kEntries; ++i) count += Wide(2 * i) < key ? 1 : 0;
    }
    return count;
  }
  constexpr Value value(int slot) const { return Any(kValuesWord + slot * kValueWords); }
  constexpr Value before() const { return Any(kOutsideWord); }
  constexpr Value behind() const { return Any(kOutsideWord + kValueWords); }
  // The sum of all values before slot `end`.
  constexpr Sum SumBefore(int end) const {
    Sum sum = Wide(kOutsideWord);
    if constexpr (kKind == AggregateKind::kSums64) sum |= Sum{words[kOutsideWord + 2]} << 64;
    CAIRN_UNROLL
    for (int slot = 0; slot < kEntries; ++slot) sum += slot < end ? value(slot) : Value{0};
    return sum;
  }

 private:
  constexpr uint64_t Wide(int word) const { return uint64_t{words[word + 1]} << 32 | words[word]; }
  constexpr void SetWide(int word, uint64_t value) {
    words[word] = static_cast<uint32_t>(value);
    words[word + 1] = static_cast<uint32_t>(value >> 32);
  }
  constexpr Value Any(int word) const {
    if constexpr (kKind == AggregateKind::kFloatSums) {
      return std::bit_cast<double>(Wide(word));
    } else if constexpr (kValueWords == 2) {
      return Wide(word);
    } else {
      return words[word];
    }
  }
  constexpr void SetAny(int word, Value value) {
    if constexpr (kKind == AggregateKind::kFloatSums) {
      SetWide(word, std::bit_cast<uint64_t>(value));
    } else if constexpr (kValueWords == 2) {
      SetWide(word, value);
    } else {
      words[word] = value;
    }
  }
};

}  // namespace cairn
