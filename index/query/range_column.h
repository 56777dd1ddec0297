#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"
#include "cairn/lookup.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {

// One end of a range of logical keys: before the first key that begins with `parts`, or after the
// last one. Without parts there is no such end.
struct KeyEnd {
  absl::Span<const DataValue> parts = {};
  bool after = false;
};

// A batch of ranges that owns its keys, bounds and cursors, or a batch of keys; one cannot be
// appended to the other. Reusable: Clear() keeps the capacity. Not thread-safe. Throws
// std::bad_alloc. Then the queries that it had before are intact, and may be followed by incomplete
// ones.
class RangeColumn {
 public:
  explicit RangeColumn(PhysicalType kind = PhysicalType::kU32) : lower_(kind), upper_(kind) {}

  PhysicalType kind() const { return lower_.kind(); }
  size_t size() const { return lower_.size(); }
  bool empty() const { return lower_.empty(); }
  // Whether it has no ranges.
  bool is_keys() const { return lower_bounds_.empty(); }

  // Removes all queries and sets the kind of the next ones.
  void Clear(PhysicalType kind);

  void AppendKeys(const KeyBatch& keys) { AppendBatch(keys, &lower_); }
  // Appends ranges, with their cursors.
  void AppendRanges(const RangeBatch& ranges);

  // Appends the key with these parts. Errors: those of KeyCodec::Append.
  absl::Status AppendKey(const KeyCodec& codec, absl::Span<const DataValue> parts) {
    return codec.Append(parts, &lower_);
  }
  // Appends the range of all keys with these leading parts; if `last_is_prefix`, the last one is a
  // prefix of the key's part. Errors: those of KeyCodec::AppendPrefixRange.
  absl::Status AppendPrefix(const KeyCodec& codec, absl::Span<const DataValue> parts,
                            bool last_is_prefix);
  // Appends the range between two ends, which is empty if they are crossed. Errors: those of
  // KeyCodec::Append, after "lower end" or "upper end".
  absl::Status AppendBetween(const KeyCodec& codec, const KeyEnd& lower, const KeyEnd& upper);

  // Sets the cursor after which the only query continues.
  void GoOnAfter(std::string cursor) {
    after_.clear();
    after_.push_back(std::move(cursor));
  }

  // The queries; valid until the column changes. Keys() requires is_keys().
  KeyBatch Keys() { return lower_.Batch(); }
  RangeBatch Ranges();

 private:
  EncodedKeys lower_;
  EncodedKeys upper_;  // only of ranges, as are the bounds
  std::vector<Bound> lower_bounds_;
  std::vector<Bound> upper_bounds_;
  std::vector<std::string> after_;  // empty if no query has a cursor
};

// Rejects KeyQuery::Prefix of all parts of a key whose last part is text; the caller more likely
// means a prefix of that text. Errors: InvalidArgument.
absl::Status CheckPrefix(const KeyCodec& codec, absl::Span<const DataValue> parts);

// Sets `ranges` to the physical ranges of a query. Errors: InvalidArgument, with the key, prefix or
// end that the codec rejects. Throws std::bad_alloc.
absl::Status RangesOf(const KeyQuery& query, const KeyCodec& codec, RangeColumn* ranges);

// Returns whether range i contains a key. Key is uint32_t, uint64_t or std::string_view.
template <typename Key>
bool IsWithin(const Key& key, const RangeBatch& ranges, size_t i) {
  const Key lower = ranges.lower.as<Key>()[i], upper = ranges.upper.as<Key>()[i];
  const Bound from = ranges.lower_bound_of(i);
  if (from == Bound::kInclusive && key < lower) return false;
  if (from == Bound::kExclusive && !(lower < key)) return false;
  switch (ranges.upper_bound_of(i)) {
    case Bound::kInclusive:
      return !(upper < key);
    case Bound::kExclusive:
      return key < upper;
    case Bound::kPrefix:
      // Without a lower end, the range also has the keys before the prefix.
      if constexpr (std::is_same_v<Key, std::string_view>) {
        return key < lower || StartsWith(key, lower);
      }
      return false;
    case Bound::kOpen:
      break;
  }
  return true;
}

}  // namespace cairn
