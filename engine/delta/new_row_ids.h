#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "cairn/types.h"
#include "engine/delta/delta_rows.h"
#include "engine/util/make_room.h"

namespace cairn {

// Primary key -> row id, for new rows. It has only hashes and ids; the keys are those of DeltaRows.
// So it takes 11 to 23 bytes per row, and grows without reading the keys. Not thread-safe.
class NewRowIds {
 public:
  // `rows` must outlive this.
  explicit NewRowIds(const DeltaRows* rows) : rows_(*rows), ids_(0, HashOfSlot(), IsKey{rows}) {}

  static uint32_t Hash(std::string_view primary_key) {
    return static_cast<uint32_t>(absl::Hash<std::string_view>()(primary_key));
  }

  bool empty() const { return ids_.empty(); }
  // Prefetches the cache lines that Find reads first for a key with this hash.
  void Prefetch(uint32_t hash) const { ids_.prefetch(Wanted{hash, {}}); }
  // Returns the id of the row with a primary key that has this hash; kNoRow if there is none.
  RowId Find(std::string_view primary_key, uint32_t hash) const {
    const auto found = ids_.find(Wanted{hash, primary_key});
    return found == ids_.end() ? kNoRow : found->row;
  }
  // Adds a row of `rows`. Throws std::bad_alloc; then nothing has changed.
  void Add(RowId row) {
    MakeRoomForOne(&ids_);
    ids_.insert(Slot{Hash(rows_.primary_key(row)), row});
  }
  void Clear() { ids_.clear(); }

 private:
  struct Slot {
    uint32_t hash;
    RowId row;
  };
  struct Wanted {
    uint32_t hash;
    std::string_view primary_key;
  };
  struct HashOfSlot {
    using is_transparent = void;
    // Spreads 32 bits over all bits of the result (Knuth's multiplicative hashing).
    static size_t Spread(uint32_t hash) { return hash * uint64_t{0x9E3779B97F4A7C15}; }
    size_t operator()(const Slot& slot) const { return Spread(slot.hash); }
    size_t operator()(const Wanted& wanted) const { return Spread(wanted.hash); }
  };
  struct IsKey {
    using is_transparent = void;
    bool operator()(const Slot& a, const Slot& b) const { return a.row == b.row; }
    bool operator()(const Slot& slot, const Wanted& wanted) const {
      return slot.hash == wanted.hash && rows->primary_key(slot.row) == wanted.primary_key;
    }
    bool operator()(const Wanted& wanted, const Slot& slot) const { return (*this)(slot, wanted); }
    const DeltaRows* rows;
  };

  const DeltaRows& rows_;
  absl::flat_hash_set<Slot, HashOfSlot, IsKey> ids_;
};

}  // namespace cairn
