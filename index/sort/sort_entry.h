#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "cairn/types.h"
#include "index/machine/byte_copy.h"

// The types of entries that are sorted. operator< orders each by (key, row id).

namespace cairn {

// A u32 key and a row id in one word with the same order.
struct Entry32 {
  using Key = uint32_t;

  uint64_t word;

  static Entry32 Make(uint32_t key, RowId row_id) { return {uint64_t{key} << 32 | row_id}; }
  uint32_t key() const { return static_cast<uint32_t>(word >> 32); }
  RowId row_id() const { return static_cast<RowId>(word); }
  // The word that a key-range split uses; ascends with the entry.
  uint64_t leading() const { return word; }
};
inline bool operator<(Entry32 a, Entry32 b) {
  return a.word < b.word;
}

// A u64 key and a row id in one little-endian 128-bit number with the same order.
struct alignas(16) Entry64 {
  using Key = uint64_t;

  uint64_t low;
  uint64_t high;

  static Entry64 Make(uint64_t key, RowId row_id) { return {row_id, key}; }
  uint64_t key() const { return high; }
  RowId row_id() const { return static_cast<RowId>(low); }
  uint64_t leading() const { return high; }
};
inline bool operator<(const Entry64& a, const Entry64& b) {
  return a.high < b.high || (a.high == b.high && a.low < b.low);
}

// A byte-string key and its row id in memory, contiguous and unaligned: row id, length, bytes.
// kSlack more bytes must be readable after the key, so that words can be loaded.
class KeyRecord {
 public:
  static constexpr size_t kHeaderBytes = sizeof(RowId) + sizeof(uint32_t);
  static constexpr size_t kSlack = 8;  // bytes that may be read after the last record

  static size_t Bytes(size_t key_bytes) { return kHeaderBytes + key_bytes; }
  // Writes a record of Bytes(key.size()) bytes; requires a key of less than 4 GiB.
  static void Write(std::string_view key, RowId row_id, char* to) {
    const uint32_t size = static_cast<uint32_t>(key.size());
    std::memcpy(to, &row_id, sizeof row_id);
    std::memcpy(to + sizeof row_id, &size, sizeof size);
    CopyBytes(key, to + kHeaderBytes);
  }
  static void SetRowId(char* record, RowId row_id) { std::memcpy(record, &row_id, sizeof row_id); }

  static RowId GetRowId(const char* record) {
    RowId row_id;
    std::memcpy(&row_id, record, sizeof row_id);
    return row_id;
  }
  static std::string_view GetKey(const char* record) {
    uint32_t size;
    std::memcpy(&size, record + sizeof(RowId), sizeof size);
    return {record + kHeaderBytes, size};
  }
};

// A partial key: the kPartialKeyBytes bytes of a key from some depth on, padded with zeros. The low
// byte is a marker: 1 + the number of the key's remaining bytes, at most kPartialKeyBytes + 1. So
// partial keys of one depth have the order of the keys. If they are equal, the keys either continue
// (marker kGoesOn) or are equal.
inline constexpr size_t kPartialKeyBytes = 7;
inline constexpr uint64_t kGoesOn = kPartialKeyBytes + 2;

// Partial keys of keys that do not share the others' first `depth` bytes.
inline constexpr uint64_t kBelowDepth = 0;           // less than every key that shares them
inline constexpr uint64_t kAboveDepth = UINT64_MAX;  // greater

// Requires depth <= key.size(), and the slack of a KeyRecord after the key.
inline uint64_t PartialKey(std::string_view key, size_t depth) {
  uint64_t word;
  std::memcpy(&word, key.data() + depth, sizeof word);
  word = __builtin_bswap64(word);
  const size_t left = key.size() - depth;
  if (left > kPartialKeyBytes) return (word & ~uint64_t{0xFF}) | kGoesOn;
  // In two steps, since a shift by 64 is undefined.
  const uint64_t mask = ~uint64_t{0} << 8 << (8 * (kPartialKeyBytes - left));
  return (word & mask) | (left + 1);
}
inline bool GoesOn(uint64_t partial_key) {
  return (partial_key & 0xFF) == kGoesOn;
}
// Whether keys with this partial key are equal: keys without a marker may be different.
inline bool TellsAll(uint64_t partial_key) {
  return ((partial_key - 1) & 0xFF) <= kPartialKeyBytes;
}

// A KeyRecord with a part of its key. Ordered by the partial key, then by the whole key. Entries
// that do not share the bytes before the partial keys' depth must be marked.
struct alignas(16) BytesEntry {
  using Key = std::string_view;

  const char* record;
  uint64_t partial_key;

  std::string_view key() const { return KeyRecord::GetKey(record); }
  RowId row_id() const { return KeyRecord::GetRowId(record); }
  uint64_t leading() const { return partial_key; }
};
inline bool operator<(const BytesEntry& a, const BytesEntry& b) {
  if (a.partial_key != b.partial_key) return a.partial_key < b.partial_key;
  const int order = TellsAll(a.partial_key) ? 0 : a.key().compare(b.key());
  return order != 0 ? order < 0 : a.row_id() < b.row_id();
}

static_assert(sizeof(Entry32) == 8 && sizeof(Entry64) == 16 && sizeof(BytesEntry) == 16);

}  // namespace cairn
