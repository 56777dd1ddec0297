#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn::gpu {

// Ranges as lower bounds to search for: two keys per range, first the beginnings of all ranges,
// then their ends. A bound after the entries of its key is exactly the lower bound of the next key.
// If there is no next key, or if the bound is open, its position is known without a search, and its
// slot may hold any key.
template <typename Key>
class BoundKeys {
 public:
  explicit BoundKeys(const RangeBatch& ranges) : ranges_(ranges) {}

  // Writes keys [first, first + count) to `to`.
  void Fill(size_t first, size_t count, void* to) const {
    Key* keys = static_cast<Key*>(to);
    const size_t size = ranges_.size();
    for (size_t i = first; i < std::min(first + count, size); ++i) {
      *keys++ = KeyAt(ranges_.lower, i) + Key{Behind(ranges_.lower_bound_of(i), kLower)};
    }
    for (size_t i = std::max(first, size); i < first + count; ++i) {
      *keys++ =
          KeyAt(ranges_.upper, i - size) + Key{Behind(ranges_.upper_bound_of(i - size), kUpper)};
    }
  }

  // Converts the lower bounds of all keys to positions in a run of `entries` entries.
  void Finish(const Position* bounds, size_t entries, absl::Span<Position> begin,
              absl::Span<Position> end) const {
    const Position last = static_cast<Position>(entries);
    const size_t size = ranges_.size();
    for (size_t i = 0; i < size; ++i) {
      const Bound lower = ranges_.lower_bound_of(i), upper = ranges_.upper_bound_of(i);
      const Position from = lower == Bound::kOpen                                   ? 0
                            : Behind(lower, kLower) && IsGreatest(ranges_.lower, i) ? last
                                                                                    : bounds[i];
      const Position to = upper == Bound::kOpen ? last
                          : Behind(upper, kUpper) && IsGreatest(ranges_.upper, i)
                              ? last
                              : bounds[size + i];
      begin[i] = from;
      end[i] = std::max(from, to);  // ranges with crossed ends are empty
    }
  }

 private:
  enum End : uint8_t { kLower, kUpper };
  // Whether a range begins, or ends, after the entries of its key.
  static bool Behind(Bound bound, End end) {
    return bound == (end == kLower ? Bound::kExclusive : Bound::kInclusive);
  }
  static Key KeyAt(const KeyBatch& keys, size_t i) {
    if constexpr (sizeof(Key) == sizeof(uint32_t)) {
      return keys.u32()[i];
    } else {
      return keys.u64()[i];
    }
  }
  static bool IsGreatest(const KeyBatch& keys, size_t i) {
    return KeyAt(keys, i) == std::numeric_limits<Key>::max();
  }

  const RangeBatch& ranges_;
};

}  // namespace cairn::gpu
