#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "engine/delta/delta.h"

namespace cairn {

// The keys that several indexes have, and how often each is counted too often if the indexes'
// numbers of distinct keys are added up. Immutable; thread-safe.
class SharedKeys {
 public:
  // Compares versions of indexes with keys of one kind, in one pass that skips keys that only one
  // of them has. Takes, per shared key, a copy of it and 8 bytes. Throws std::bad_alloc.
  static std::shared_ptr<const SharedKeys> Of(absl::Span<const Delta* const> versions);
  // The same if no version has a smaller key than an earlier version, and nothing has changed since
  // their bases were built. It compares only their first and last keys.
  static std::shared_ptr<const SharedKeys> OfNeighbours(absl::Span<const Delta* const> versions);

  // In ascending order.
  const EncodedKeys& keys() const { return keys_; }
  // The positions of the shared keys in range i of a checked batch.
  struct Stretch {
    size_t begin = 0;
    size_t end = 0;
  };
  Stretch Find(const RangeBatch& ranges, size_t i) const;
  // Returns how many times too often the keys of a stretch are counted.
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
  std::vector<uint64_t> before_ = {0};  // total repeats before each key
};

}  // namespace cairn
