#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "index/aligned_buffer.h"
#include "xxhash.h"

namespace cairn {

// Tells of most keys that no entry with them came or went since the base, so that for these the
// base's answer stands: a Bloom filter whose bits for a key are in one word (Putze, Sanders and
// Singler, Cache-, hash- and space-efficient Bloom filters, 2007).
//
// Grows by Add only, so all versions of a delta share one: what newer versions add makes it a
// little less sharp for older ones, and never wrong. One thread adds; any number of others may read
// at the same time.
class DeltaFilter {
 public:
  // For so many keys; more make it less sharp. Throws std::bad_alloc.
  explicit DeltaFilter(uint64_t capacity)
      : shift_(64 -
               std::bit_width(std::max<uint64_t>(capacity, kLeastCapacity) / kKeysPerWord - 1)),
        words_(size_t{1} << (64 - shift_)) {
    std::fill(words_.begin(), words_.end(), 0);
  }

  // Equal keys have equal hashes.
  static uint64_t Hash(uint64_t key) {
    const Wide product = static_cast<Wide>(key ^ 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
    return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  }
  static uint64_t Hash(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

  void Add(uint64_t hash) {
    std::atomic_ref<uint64_t> word(words_[hash >> shift_]);
    word.store(word.load(std::memory_order_relaxed) | Bits(hash), std::memory_order_relaxed);
    ++size_;
  }
  // False only for what was not added.
  bool MayHold(uint64_t hash) const {
    const uint64_t bits = Bits(hash);
    std::atomic_ref<uint64_t> word(const_cast<uint64_t&>(words_[hash >> shift_]));
    return (word.load(std::memory_order_relaxed) & bits) == bits;
  }

  // Keys added, and how many it is for; for the thread that adds.
  uint64_t size() const { return size_; }
  uint64_t capacity() const { return words_.size() * kKeysPerWord; }
  uint64_t memory_bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  __extension__ using Wide = unsigned __int128;

  // 16 bits a key when full, of which it sets four: then 0.7% of other keys pass, and 0.1% of them
  // when half full.
  static constexpr uint64_t kKeysPerWord = 4;
  static constexpr uint64_t kLeastCapacity = 4096;

  static uint64_t Bits(uint64_t hash) {
    return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63) |
           uint64_t{1} << (hash >> 12 & 63) | uint64_t{1} << (hash >> 18 & 63);
  }

  int shift_;
  AlignedBuffer<uint64_t> words_;
  uint64_t size_ = 0;
};

}  // namespace cairn
