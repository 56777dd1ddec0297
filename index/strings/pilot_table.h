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
// bucket has a byte, its pilot, chosen such that all slots of all buckets are distinct. Pilots this
// small require that buckets can take each other's slots, as in Groot Koerkamp's
// PtrHash (SEA 2025). Buckets belong to parts with separate slots, so that parts are built in
// parallel and a part fits in a cache.
//
// Uses 0.4 bytes per hash for pilots, which mostly stay in a cache, and 4.6 for slots; a few KB at
// least. A hash that is not in the table leads to another hash's value, so callers must compare.
// Empty slots have values of nearby slots. One value for all would make all misses read it.
//
// Immutable except for TakeSlots; its const methods are safe from any number of threads.
class PilotTable {
 public:
  // values[i] is the value of hashes[i]. Returns nullopt if two hashes are equal (in one of 40
  // tables, with 10^9 hashes), if hashes are distributed very unevenly, or by chance; retry with
  // another seed. At most 2^32 - 1 hashes. Throws std::bad_alloc.
  static std::optional<PilotTable> Build(absl::Span<const uint64_t> hashes,
                                         absl::Span<const uint32_t> values, int threads);

  // The approximate number of slots of a table of `hashes` hashes; a few percent more if the hashes
  // are spread less evenly over parts.
  static size_t SlotsFor(size_t hashes);
  // The most memory that a table of `hashes` hashes takes.
  static uint64_t MostBytesFor(size_t hashes);

  // A lookup in three steps, so that many can wait for memory together: prefetch the pilot, then
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

  // Moves the values of all slots out, for callers that store something else in their place.
  // Lookups end with Slot afterwards, since PrefetchSlot and Value have nothing to read.
  AlignedBuffer<uint32_t> TakeSlots() { return std::exchange(slots_, {}); }

  // For lookups on a device, which work like Bucket, Slot and Value.
  absl::Span<const uint8_t> pilots() const { return pilots_.span(); }
  absl::Span<const uint32_t> slots() const { return slots_.span(); }
  uint32_t part_slots() const { return part_slots_; }

  uint64_t memory_bytes() const { return pilots_.size() + slots_.size() * sizeof(uint32_t); }
  uint64_t huge_page_bytes() const { return pilots_.huge_page_bytes() + slots_.huge_page_bytes(); }

  static constexpr uint32_t kBucketsAPart = 4096;
  // The slot, in a part of `slots` slots, of a hash in a bucket with this pilot.
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
