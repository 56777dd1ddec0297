#pragma once

#include <vector>

#include "absl/status/status.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/where/predicate.h"
#include "engine/where/group_member.h"

namespace cairn {

// The physical ranges of the keys that a comparison asks for.
class KeyRanges {
 public:
  explicit KeyRanges(KeyKind kind) : lower_(kind), upper_(kind) {}

  // Adds those of a comparison, Predicate::Kind::kKeys or kCompare. InvalidArgument, naming index
  // and comparison, for a key that does not fit. Throws std::bad_alloc.
  absl::Status Add(const Predicate& where, const GroupMember& member);

  // Whether one of the keys, or the end of a range, was NULL, which nothing is equal to.
  bool has_null() const { return has_null_; }
  // Valid until this changes.
  RangeBatch batch();

 private:
  absl::Status AddKey(const KeyCodec& codec, const LogicalKey& key, bool is_prefix);
  // From `lower`, or behind it, to `upper`, or behind that; null: open.
  absl::Status AddRange(const KeyCodec& codec, const LogicalKey* lower, bool lower_exclusive,
                        const LogicalKey* upper, bool upper_inclusive);
  absl::Status AddAll(const Predicate& where, const KeyCodec& codec);

  bool has_null_ = false;
  KeyColumn lower_, upper_;
  std::vector<Bound> lower_bounds_, upper_bounds_;
};

}  // namespace cairn
