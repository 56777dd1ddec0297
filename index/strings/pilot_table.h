#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"

namespace cairn {

// A table from hashes of 64 bits to values of 32, whose every lookup reads one slot: a perfect hash
// function after Pibiri and Trani (PTHash, SIGIR 2021). Hashes fall into buckets of 2.5, and each
// bucket has a byte, its pilot, that was chosen such that all slots of all buckets are different;
// pilots that are this small need buckets that take each other's slots, as in Groot Koerkamp's
// PtrHash (SEA 2025). Buckets belong to parts with slots of their own, so that parts are built
// beside each other and a part fits in a cache.
//
// Takes 0.4 bytes a hash for pilots, which mostly stay in a cache, and 4.6 for slots; a few KB at
// least. A hash that is not in the table leads to a value too, some other's: whoever asks compares.
// Empty slots have values of slots nearby, not one value for all, which all misses would then read.
//
// Immutable but for TakeSlots; its const methods are safe from any number of threads.
class PilotTable {
 public:
  // values[i] is that of hashes[i]. None where two hashes are equal, as of 10^9 in one table of
  // forty, where they are far from even, or chance was against it: other hashes, of another seed,
  // will do. At most 2^32 - 1 hashes. Throws std::bad_alloc.
  static std::optional<PilotTable> Build(absl::Span<const uint64_t> hashes,
                                         absl::Span<const uint32_t> values, int threads);

  // About so many slots has a table of so many hashes: a few in a hundred more where chance spreads
  // them worse over parts.
  static size_t SlotsFor(size_t hashes);
  // At most this much memory takes a table of so many hashes.
  static uint64_t MostBytesFor(size_t hashes);

  // A lookup in three steps, so that many may wait for memory together: prefetch the pilot, then
  // the slot, then read.
  uint32_t Bucket(uint64_t hash) const {
    return static_cast<uint32_t>((hash >> 32) * pilots_.size() >> 32);
  }
  void PrefetchPilot(uint32_t bucket) const { Prefetch(pilots_.data() + bucket); }
  size_t Slot(uint64_t hash, uint32_t bucket) const {
    return size_t{bucket / kBucketsAPart} * part_slots_ +
           SlotInPart(hash, pilots_[bucket], part_slots_);
  }
  void PrefetchSlot(size_t slot) const { Prefetch(slots_.data() + slot); }
  uint32_t Value(size_t slot) const { return slots_[slot]; }

  // Gives the values of all slots away, for those who put something else in their place: lookups
  // end with Slot from here on, as PrefetchSlot and Value have nothing to read.
  AlignedBuffer<uint32_t> TakeSlots() { return std::exchange(slots_, {}); }

  // What lookups on a device need, which do as Bucket, Slot and Value.
  absl::Span<const uint8_t> pilots() const { return pilots_.span(); }
  absl::Span<const uint32_t> slots() const { return slots_.span(); }
  uint32_t part_slots() const { return part_slots_; }

  uint64_t memory_bytes() const { return pilots_.size() + slots_.size() * sizeof(uint32_t); }
  uint64_t huge_page_bytes() const { return pilots_.huge_page_bytes() + slots_.huge_page_bytes(); }

  static constexpr uint32_t kBucketsAPart = 4096;
  // Of a part of `slots`, that of a hash in a bucket with this pilot.
  static constexpr uint32_t SlotInPart(uint64_t hash, uint8_t pilot, uint32_t slots) {
    const uint64_t mixed = (hash ^ pilot * 0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93;
    return static_cast<uint32_t>((mixed >> 32) * slots >> 32);
  }

 private:
  struct Part;

  AlignedBuffer<uint8_t> pilots_;  // of each bucket, part after part
  AlignedBuffer<uint32_t> slots_;  // of each part
  uint32_t part_slots_ = 0;
};

}  // namespace cairn
