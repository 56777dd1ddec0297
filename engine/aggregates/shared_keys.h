#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "engine/delta/delta.h"

namespace cairn {

// The keys that several of some indexes have, and how many of these: what counts of different keys
// of each, added up, are too many. Immutable; thread-safe.
class SharedKeys {
 public:
  // Of versions of indexes with keys of one kind, in one pass over the keys of all but what one of
  // them alone has. Takes a copy of each key that several have and 8 bytes. Throws std::bad_alloc.
  static std::shared_ptr<const SharedKeys> Of(absl::Span<const Delta* const> versions);
  // The same where each version has no key less than one of those before it, and nothing has
  // changed since their bases were built: their first and last keys tell.
  static std::shared_ptr<const SharedKeys> OfNeighbours(absl::Span<const Delta* const> versions);

  // In order.
  const EncodedKeys& keys() const { return keys_; }
  // The positions of those in range i, of a batch that has been checked.
  struct Stretch {
    size_t begin = 0;
    size_t end = 0;
  };
  Stretch Find(const RangeBatch& ranges, size_t i) const;
  // How many times too often keys of a stretch are counted.
  uint64_t Repeats(const Stretch& stretch) const {
    return before_[stretch.end] - before_[stretch.begin];
  }
  uint64_t memory_bytes() const;

 private:
  explicit SharedKeys(PhysicalType kind) : keys_(kind) {}

  template <typename Key>
  void Merge(absl::Span<const Delta* const> versions);
  template <typename Key>
  void CompareNeighbours(absl::Span<const Delta* const> versions);
  template <typename Key>
  void Append(Key key, uint64_t repeats);

  EncodedKeys keys_;
  std::vector<uint64_t> before_ = {0};  // repeats of the keys before
};

}  // namespace cairn
