#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"

namespace cairn {

// From a key's hash to the position of the first entry that has it: open addressing by linear
// probing, of slots that tell nearly all keys apart without reading them. A look-up reads a line,
// and the key.
//
// Where keys are made to collide it overflows rather than become slow, and is of no use then.
//
// Takes 16 bytes a key at most. Immutable once filled; every const method is safe from any number
// of threads.
class KeySlots {
 public:
  static constexpr Position kNone = UINT32_MAX;

  KeySlots() = default;
  // For up to `keys` different ones. Throws std::bad_alloc.
  explicit KeySlots(size_t keys);

  // Adds a key, which must not be there. False, and of no use any more, if it overflows.
  bool Add(uint64_t hash, Position position);

  // Asks the cache for what Find reads.
  void Prefetch(uint64_t hash) const { cairn::Prefetch(slots_.data() + FirstSlot(hash)); }
  // The position that Find tries first, or kNone where it finds nothing.
  Position Candidate(uint64_t hash) const {
    return Find(hash, [](Position) { return true; });
  }
  // The position for which is_key(position) holds, among those whose keys have the hash; else
  // kNone.
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
  // At most so many slots are probed; behind the last first slot there are as many, and one that
  // stays empty.
  static constexpr size_t kMaxProbes = 64;

  size_t FirstSlot(uint64_t hash) const { return (hash >> 32) * firsts_ >> 32; }
  static uint32_t Tag(uint64_t hash) { return static_cast<uint32_t>(hash); }

  uint64_t firsts_ = 0;  // slots that a hash may fall on
  AlignedBuffer<Slot> slots_;
};

}  // namespace cairn
