#include "engine/where/key_ranges_of.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_format.h"
#include "index/keys/key_encoding.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

// Maximum number of ranges. A negated key has one range for every choice of parts that may be null
// instead.
constexpr size_t kMaxKeyRanges = size_t{1} << 24;
// Number of keys that are added between two checks of the flag.
constexpr size_t kKeysTogether = 4096;

bool IsNull(const DataValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

// Returns the parts before the first null.
absl::Span<const DataValue> BeforeNull(absl::Span<const DataValue> parts) {
  const auto null = std::find_if(parts.begin(), parts.end(), IsNull);
  return parts.first(static_cast<size_t>(null - parts.begin()));
}

}  // namespace

KeyRanges::KeyRanges(const KeyCodec& codec, Which which, const StopCondition& stop)
    : codec_(&codec), which_(which), stop_(stop), ranges_(codec.kind()) {}

KeyRanges::Comparison KeyRanges::Opposite(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess:
      return Comparison::kAtLeast;
    case Comparison::kAtMost:
      return Comparison::kGreater;
    case Comparison::kGreater:
      return Comparison::kAtMost;
    case Comparison::kAtLeast:
      break;
  }
  return Comparison::kLess;
}

absl::Status KeyRanges::CheckParts(Parts parts) const {
  const size_t most = codec_->parts().size();
  if (parts.empty() || parts.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected 1 to %d values of leading parts, found %d", most, parts.size()));
  }
  std::string scratch;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (IsNull(parts[i])) continue;
    const absl::Status s = AppendPart(PartLayout::Of(*codec_, i), parts[i], &scratch);
    if (s.ok()) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "part %d (%s): %s", i + 1, DataTypeName(codec_->parts()[i]), std::string(s.message())));
  }
  return absl::OkStatus();
}

absl::Status KeyRanges::AddKeys(Parts parts, bool is_prefix) {
  RETURN_IF_ERROR(ranges_.AppendPrefix(*codec_, parts, is_prefix));
  if (ranges_.size() <= kMaxKeyRanges) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("expected at most %d ranges of keys, found more", kMaxKeyRanges));
}

absl::Status KeyRanges::AddEqual(Parts parts, bool is_prefix) {
  if (parts.empty()) return CheckParts(parts);
  const bool has_null = BeforeNull(parts).size() != parts.size();
  if (!has_null && (which_ == Which::kTrue || !keeps_nulls())) return AddKeys(parts, is_prefix);
  if (has_null) {
    RETURN_IF_ERROR(CheckParts(parts));
    if (which_ == Which::kTrue) return absl::OkStatus();
  }
  // The equality is not false for a key if each of its parts is equal to the given part, is null,
  // or is compared with null.
  size_t size = parts.size();
  while (size > 0 && IsNull(parts[size - 1])) --size;
  is_prefix = is_prefix && size == parts.size();
  parts = parts.first(size);
  if (size == 0) return AddRange({}, {});
  if (BeforeNull(parts).size() != size) {
    return absl::InvalidArgumentError(
        "the negation of a key with NULL before another part: keys are ordered by "
        "their first parts, and cannot be found by later parts only");
  }
  if (!keeps_nulls()) return AddKeys(parts, is_prefix);
  std::vector<DataValue> key;
  for (size_t nulls = 0; nulls < size_t{1} << size; ++nulls) {
    key.assign(parts.begin(), parts.end());
    for (size_t i = 0; i < size; ++i) {
      if ((nulls >> i & 1) != 0) key[i] = DataValue();
    }
    RETURN_IF_ERROR(AddKeys(key, is_prefix && !IsNull(key.back())));
  }
  return absl::OkStatus();
}

absl::Status KeyRanges::AddOrder(Comparison comparison, Parts parts) {
  const Parts known = BeforeNull(parts);
  const bool has_null = known.size() != parts.size();
  if (has_null || parts.empty()) RETURN_IF_ERROR(CheckParts(parts));
  if (which_ == Which::kNotFalse && keeps_nulls()) {
    KeyRanges& is_false = outside_.emplace_back(*codec_, Which::kTrue, stop_);
    return is_false.AddOrder(Opposite(comparison), parts);
  }
  // For keys that are equal up to the null, the result is unknown.
  const bool inclusive = has_null ? which_ == Which::kNotFalse : IsInclusive(comparison);
  if (known.empty()) {
    return which_ == Which::kNotFalse ? AddRange({}, {}) : absl::OkStatus();
  }
  if (!keeps_nulls()) {
    return IsLess(comparison) ? AddRange({}, {known, inclusive})
                              : AddRange({known, !inclusive}, {});
  }
  // The first part that differs decides, unless it is null. Nulls are at one end of the keys with
  // the same earlier parts.
  const bool nulls_first = codec_->nulls() == NullPolicy::kFirst;
  for (size_t i = 0; i < known.size(); ++i) {
    std::vector<DataValue> null(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(i));
    null.emplace_back();
    const bool or_equal = inclusive && i + 1 == known.size();
    if (IsLess(comparison)) {
      RETURN_IF_ERROR(AddRange(nulls_first ? KeyEnd{null, true} : KeyEnd{known.first(i), false},
                               {known.first(i + 1), or_equal}));
    } else {
      RETURN_IF_ERROR(AddRange({known.first(i + 1), !or_equal},
                               nulls_first ? KeyEnd{known.first(i), true} : KeyEnd{null, false}));
    }
  }
  return absl::OkStatus();
}

absl::Status KeyRanges::AddBetween(const KeyQuery& range) {
  const bool upper_inclusive = range.upper_bound() == Bound::kInclusive;
  const Comparison from_lower =
      range.lower_bound() == Bound::kExclusive ? Comparison::kGreater : Comparison::kAtLeast;
  const Comparison to_upper = upper_inclusive ? Comparison::kAtMost : Comparison::kLess;
  const bool below = range.lower_bound() == Bound::kOpen;
  const bool above = range.upper_bound() == Bound::kOpen;
  if (below && above) {
    if (which_ == Which::kNotFalse || !keeps_nulls()) return AddRange({}, {});
    if (codec_->parts().size() > 1) {
      return absl::InvalidArgumentError(
          "expected keys of one part: for several parts it is unknown which one is null");
    }
    const std::vector<DataValue> null(1);
    return codec_->nulls() == NullPolicy::kFirst ? AddRange({null, true}, {})
                                                 : AddRange({}, {null, false});
  }
  const Parts lower = range.keys()[0].parts(), upper = range.keys()[1].parts();
  if (below) return AddOrder(to_upper, upper);
  if (above) return AddOrder(from_lower, lower);
  if (keeps_nulls() && (which_ == Which::kNotFalse || codec_->parts().size() > 1)) {
    auto& [from, to] =
        both_.emplace_back(KeyRanges(*codec_, which_, stop_), KeyRanges(*codec_, which_, stop_));
    RETURN_IF_ERROR(from.AddOrder(from_lower, lower));
    return to.AddOrder(to_upper, upper);
  }
  const Parts first = BeforeNull(lower), last = BeforeNull(upper);
  const bool first_null = first.size() != lower.size();
  const bool last_null = last.size() != upper.size();
  if (first_null || lower.empty()) RETURN_IF_ERROR(CheckParts(lower));
  if (last_null || upper.empty()) RETURN_IF_ERROR(CheckParts(upper));
  const bool lower_exclusive = from_lower == Comparison::kGreater;
  if (which_ == Which::kNotFalse) {
    return AddRange({first, lower_exclusive && !first_null}, {last, upper_inclusive || last_null});
  }
  if (first.empty() || last.empty()) return absl::OkStatus();
  return AddRange({first, lower_exclusive || first_null}, {last, upper_inclusive && !last_null});
}

absl::Status KeyRanges::AddAll(const Predicate& where) {
  const KeyQuery& query = where.keys();
  switch (query.kind()) {
    case KeyQuery::Kind::kKeys:
      for (size_t i = 0; i < query.keys().size(); ++i) {
        if (i % kKeysTogether == 0) RETURN_IF_ERROR(stop_.Check());
        RETURN_IF_ERROR(AddEqual(query.keys()[i].parts(), /*is_prefix=*/false));
      }
      return absl::OkStatus();
    case KeyQuery::Kind::kPrefix:
      RETURN_IF_ERROR(CheckPrefix(*codec_, query.keys()[0].parts()));
      return AddEqual(query.keys()[0].parts(), /*is_prefix=*/false);
    case KeyQuery::Kind::kBytePrefix:
      return AddEqual(query.keys()[0].parts(), /*is_prefix=*/true);
    case KeyQuery::Kind::kRange:
      break;
  }
  return AddBetween(query);
}

absl::Status KeyRanges::Add(const Predicate& where, const GroupMember& member) {
  const absl::Status s = AddAll(where);
  return s.ok() || absl::IsCancelled(s)
             ? s
             : absl::Status(s.code(), absl::StrFormat("index '%s', %s: %s", member.name(),
                                                      where.ToString(), std::string(s.message())));
}

absl::StatusOr<EntrySet> KeyRanges::Of(const IndexVersion& version) {
  ASSIGN_OR_RETURN(EntrySet set, EntrySet::Of(version, ranges_.Ranges()));
  if (both_.empty() && outside_.empty()) return set;
  std::vector<EntrySet> sets;
  sets.push_back(std::move(set));
  for (auto& [a, b] : both_) {
    ASSIGN_OR_RETURN(const EntrySet of_a, a.Of(version));
    ASSIGN_OR_RETURN(const EntrySet of_b, b.Of(version));
    sets.push_back(of_a.Intersection(of_b));
  }
  for (KeyRanges& of : outside_) {
    ASSIGN_OR_RETURN(const EntrySet outside, of.Of(version));
    sets.push_back(outside.Complement(*version.delta));
  }
  return EntrySet::Union(std::move(sets));
}

}  // namespace cairn
