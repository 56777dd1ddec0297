#include "engine/delta/key_slots.h"

#include <algorithm>

namespace cairn {

KeySlots::KeySlots(size_t keys)
    : firsts_(std::min<uint64_t>(uint64_t{keys} * 7 / 4 + 1, UINT32_MAX)),
      slots_(firsts_ + kMaxProbes + 1) {
  std::fill(slots_.begin(), slots_.end(), Slot{0, kNone});
}

bool KeySlots::Add(uint64_t hash, Position position) {
  size_t slot = FirstSlot(hash);
  const size_t end = slot + kMaxProbes;
  while (slot < end && slots_[slot].position != kNone) ++slot;
  if (slot == end) return false;
  slots_[slot] = {Tag(hash), position};
  return true;
}

}  // namespace cairn
