#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"

namespace cairn {

// Maps a key's hash to the position of the first entry with that key. It is a hash table with open
// addressing and linear probing. Its tags tell nearly all keys apart without reading them. A
// look-up reads one cache line and the key.
//
// If keys are chosen to collide, the table overflows rather than become slow, and cannot be used.
//
// Takes at most 16 bytes per key. Immutable once filled; every const method is safe from any number
// of threads.
class KeySlots {
 public:
  static constexpr Position kNone = UINT32_MAX;

  KeySlots() = default;
  // For up to `keys` distinct keys. Throws std::bad_alloc.
  explicit KeySlots(size_t keys);

  // Adds a key, which must not be in the table. Returns false if the table overflows; it cannot be
  // used then.
  bool Add(uint64_t hash, Position position);

  // Prefetches the cache line that Find reads.
  void Prefetch(uint64_t hash) const { cairn::Prefetch(slots_.data() + FirstSlot(hash)); }
  // The first position that Find tries, or kNone if there is none.
  Position Candidate(uint64_t hash) const {
    return Find(hash, [](Position) { return true; });
  }
  // Returns the position for which is_key(position) is true, among those whose keys have the hash;
  // otherwise kNone.
  template <typename IsKey>
  Position Find(uint64_t hash, IsKey is_key) const {
    for (size_t slot = FirstSlot(hash); slots_[slot].position != kNone; ++slot) {
      if (slots_[slot].tag == Tag(hash) && is_key(slots_[slot].position)) {
        return slots_[slot].position;
      }
    }
    return kNone;
  }

  uint64_t memory_bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    uint32_t tag;
    Position position;  // kNone: empty
  };
  // Maximum number of slots that are probed. That many slots follow the last first slot, and one
  // more, which stays empty.
  static constexpr size_t kMaxProbes = 64;

  size_t FirstSlot(uint64_t hash) const { return (hash >> 32) * firsts_ >> 32; }
  static uint32_t Tag(uint64_t hash) { return static_cast<uint32_t>(hash); }

  uint64_t firsts_ = 0;  // number of slots that a hash may map to
  AlignedBuffer<Slot> slots_;
};

}  // namespace cairn
