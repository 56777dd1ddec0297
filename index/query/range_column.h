#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"
#include "cairn/lookup.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "index/query/physical_key.h"

namespace cairn {

// One end of a range of logical keys: the first key that begins with `parts`, or the first one
// after all of these. Without parts there is no such end.
struct KeyEnd {
  absl::Span<const DataValue> parts = {};
  bool after = false;
};

// A batch of ranges that owns its keys, bounds and cursors, or a batch of keys: appending the one
// to the other is not allowed. Reusable: Clear() keeps the capacity. Not thread-safe. Throws
// std::bad_alloc; the queries that it had before are then intact, and parts of others may follow.
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

  // Appends the key that has these parts. Errors: those of KeyCodec::Append.
  absl::Status AppendKey(const KeyCodec& codec, absl::Span<const DataValue> parts) {
    return codec.Append(parts, &lower_);
  }
  // Appends the range of all keys whose leading parts are these; if `last_is_prefix`, the last of
  // them may go on. Errors: those of KeyCodec::AppendPrefixRange.
  absl::Status AppendPrefix(const KeyCodec& codec, absl::Span<const DataValue> parts,
                            bool last_is_prefix);
  // Appends the range from one end to, and without, another. It is empty if the ends have crossed.
  // Errors: those of KeyCodec::Append, after "lower end" or "upper end".
  absl::Status AppendBetween(const KeyCodec& codec, const KeyEnd& lower, const KeyEnd& upper);

  // Sets the cursor that the only query goes on after.
  void GoOnAfter(std::string cursor) {
    after_.clear();
    after_.push_back(std::move(cursor));
  }

  // The queries; valid until the column changes. Keys() requires is_keys().
  KeyBatch Keys() { return lower_.Batch(); }
  RangeBatch Ranges();

 private:
  EncodedKeys lower_;
  EncodedKeys upper_;  // of ranges only, and so are the bounds
  std::vector<Bound> lower_bounds_;
  std::vector<Bound> upper_bounds_;
  std::vector<std::string> after_;  // empty while no query has a cursor
};

// Checks that KeyQuery::Prefix of these parts is not one of whole keys whose last part is text,
// which is more likely to be meant as the beginning of a text. Errors: InvalidArgument.
absl::Status CheckPrefix(const KeyCodec& codec, absl::Span<const DataValue> parts);

// Sets `ranges` to the physical ranges of a query. Errors: InvalidArgument, naming the key, prefix
// or end that the codec refuses. Throws std::bad_alloc.
absl::Status RangesOf(const KeyQuery& query, const KeyCodec& codec, RangeColumn* ranges);

}  // namespace cairn
