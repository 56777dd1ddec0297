#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"
#include "cairn/predicate.h"
#include "cairn/query.h"
#include "engine/where/entry_set.h"
#include "engine/where/group_member.h"
#include "index/machine/stop_flag.h"
#include "index/query/range_column.h"

namespace cairn {

// The keys of an index for which at least one of several comparisons is true, or is not false. SQL
// compares composite keys part by part. If no earlier part decides, a null in the key or in the
// comparison makes the result unknown. So each comparison is true for some keys, false for others,
// and unknown for the rest. A row satisfies its negation if it is false for all of the row's keys.
class KeyRanges {
 public:
  enum class Which : uint8_t { kTrue, kNotFalse };

  // `codec` must outlive this.
  KeyRanges(const KeyCodec& codec, Which which, const StopCondition& stop);

  // Adds the keys of a comparison, Predicate::Kind::kKeys. InvalidArgument, naming index and
  // comparison: a key does not fit, or these keys are not ranges. Cancelled. Throws std::bad_alloc.
  absl::Status Add(const Predicate& where, const GroupMember& member);
  // Returns the entries of a version that have these keys. Errors: those of EntrySet::Of.
  absl::StatusOr<EntrySet> Of(const IndexVersion& version);

 private:
  using Parts = absl::Span<const DataValue>;
  enum class Comparison : uint8_t { kLess, kAtMost, kGreater, kAtLeast };

  static bool IsLess(Comparison comparison) {
    return comparison == Comparison::kLess || comparison == Comparison::kAtMost;
  }
  static bool IsInclusive(Comparison comparison) {
    return comparison == Comparison::kAtMost || comparison == Comparison::kAtLeast;
  }
  // Returns the comparison that is true if `comparison` is false.
  static Comparison Opposite(Comparison comparison);

  bool keeps_nulls() const { return codec_->nulls() != NullPolicy::kSkip; }
  absl::Status AddAll(const Predicate& where);
  absl::Status AddEqual(Parts parts, bool is_prefix);
  absl::Status AddOrder(Comparison comparison, Parts parts);
  absl::Status AddBetween(const KeyQuery& range);
  absl::Status AddRange(const KeyEnd& lower, const KeyEnd& upper) {
    return ranges_.AppendBetween(*codec_, lower, upper);
  }
  absl::Status AddKeys(Parts parts, bool is_prefix);
  // Checks the values of a comparison with a null, which is not encoded.
  absl::Status CheckParts(Parts parts) const;

  const KeyCodec* codec_;
  Which which_;
  StopCondition stop_;
  RangeColumn ranges_;
  std::vector<std::pair<KeyRanges, KeyRanges>> both_;  // keys in both of a pair
  std::vector<KeyRanges> outside_;                     // keys not in one of these
};

}  // namespace cairn
