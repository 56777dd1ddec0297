#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/types/span.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"
#include "xxhash.h"

namespace cairn {

// Reports for most keys outside a set that they are not in it. This is a Bloom filter whose bits
// for a key are all in one word, so that batches are looked up with gathers (Putze, Sanders and
// Singler, Cache-, hash- and space-efficient Bloom filters, 2007).
//
// Changes by Add only. One thread may add while others look up. A lookup passes every key whose Add
// happened before it.
class KeyFilter {
 public:
  // For `capacity` keys; more keys raise the false-positive rate. If DefaultSimdLevel() fails, the
  // scalar level is used. Throws std::bad_alloc.
  explicit KeyFilter(uint64_t capacity);
  // Returns a filter that passes every key whose Add happened before the call. Its size() counts
  // only the keys that are added to it. Throws std::bad_alloc.
  std::unique_ptr<KeyFilter> Copy() const;

  // Equal keys have equal hashes.
  static uint64_t Hash(uint64_t key) {
    // The factors have 32 bits, because every instruction set can multiply these. The halves of the
    // product are swapped: the upper half is less than kFactor, the lower half takes every value.
    const uint64_t mixed = (key & UINT32_MAX) * kLowFactor + (key >> 32) * kHighFactor;
    return std::rotr(((mixed ^ mixed >> 32) & UINT32_MAX) * kFactor, 32);
  }
  static uint64_t Hash(std::string_view key) {
    return Hash(static_cast<uint64_t>(XXH3_64bits(key.data(), key.size())));
  }

  void Add(uint64_t hash) {
    std::atomic_ref<uint64_t> word(words_[hash >> shift_]);
    word.store(word.load(std::memory_order_relaxed) | Bits(hash), std::memory_order_relaxed);
    ++size_;
  }
  // Prefetches the word that MayHold reads.
  void Prefetch(uint64_t hash) const { cairn::Prefetch(words_.data() + (hash >> shift_)); }
  // Returns false only for a hash that was not added.
  bool MayHold(uint64_t hash) const {
    const uint64_t bits = Bits(hash);
    std::atomic_ref<uint64_t> word(const_cast<uint64_t&>(words_[hash >> shift_]));
    return (word.load(std::memory_order_relaxed) & bits) == bits;
  }
  // Writes the positions of the keys for which MayHold is true to `passed`, ascending, and returns
  // their number. `passed` must have room for all keys.
  size_t Select(absl::Span<const uint32_t> keys, uint32_t* passed) const;
  size_t Select(absl::Span<const uint64_t> keys, uint32_t* passed) const;
  size_t Select(absl::Span<const std::string_view> keys, uint32_t* passed) const;

  // The number of keys added, and the number for which the filter was sized; call these from the
  // adding thread only.
  uint64_t size() const { return size_; }
  uint64_t capacity() const { return words_.size() * kKeysPerWord; }
  uint64_t memory_bytes() const { return words_.size() * sizeof(uint64_t); }

  // The rest of the public section is for key_filter.cc.

  static constexpr uint32_t kLowFactor = 0x9E3779B1;
  static constexpr uint32_t kHighFactor = 0x85EBCA77;
  static constexpr uint32_t kFactor = 0xC2B2AE3D;
  // The highest bits of the hash select a word. Each key sets three bits in it, whose numbers are
  // stored in these three six-bit fields of the hash.
  static constexpr int kFirstBit = 12;
  static constexpr int kSecondBit = 18;
  static constexpr int kThirdBit = 24;

 private:
  // 16 bits per key when full: 0.8% of other keys pass then, and 0.2% when half full
  // (key_filter_test).
  static constexpr uint64_t kKeysPerWord = 4;
  static constexpr uint64_t kMinCapacity = 4096;

  static uint64_t Bits(uint64_t hash) {
    return uint64_t{1} << (hash >> kFirstBit & 63) | uint64_t{1} << (hash >> kSecondBit & 63) |
           uint64_t{1} << (hash >> kThirdBit & 63);
  }
  template <typename Key>
  size_t SelectAll(absl::Span<const Key> keys, uint32_t* passed) const;

  SimdLevel level_ = SimdLevel::kScalar;
  int shift_;
  AlignedBuffer<uint64_t> words_;
  uint64_t size_ = 0;
};

}  // namespace cairn
