#include "engine/where/key_ranges_of.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_format.h"
#include "index/keys/key_encoding.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

using Comparison = Predicate::Comparison;

// A list of more ranges is refused: each key that is not to be found is one for every choice of
// parts that may be null instead.
constexpr size_t kMaxKeyRanges = size_t{1} << 24;
// Keys that are added between two looks at the flag.
constexpr size_t kKeysTogether = 4096;

bool IsNull(const DataValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

// The parts before the first null.
absl::Span<const DataValue> BeforeNull(absl::Span<const DataValue> parts) {
  const auto null = std::find_if(parts.begin(), parts.end(), IsNull);
  return parts.first(static_cast<size_t>(null - parts.begin()));
}

bool IsLess(Comparison comparison) {
  return comparison == Comparison::kLess || comparison == Comparison::kAtMost;
}
bool IsInclusive(Comparison comparison) {
  return comparison == Comparison::kAtMost || comparison == Comparison::kAtLeast;
}
// True where `comparison` is false.
Comparison Opposite(Comparison comparison) {
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

void AppendPlaceholder(EncodedKeys* keys) {
  switch (keys->kind()) {
    case PhysicalType::kU32:
      return keys->AppendU32(0);
    case PhysicalType::kU64:
      return keys->AppendU64(0);
    case PhysicalType::kBytes:
      return keys->AppendBytes("");
  }
}

}  // namespace

KeyRanges::KeyRanges(const KeyCodec& codec, Which which, const std::atomic<bool>* cancelled)
    : codec_(&codec),
      which_(which),
      cancelled_(cancelled),
      lower_(codec.kind()),
      upper_(codec.kind()) {}

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
  bool open = false;
  RETURN_IF_ERROR(codec_->AppendPrefixRange(parts, is_prefix, &lower_, &upper_, &open));
  lower_bounds_.push_back(Bound::kInclusive);
  upper_bounds_.push_back(open ? Bound::kOpen : Bound::kExclusive);
  if (lower_bounds_.size() <= kMaxKeyRanges) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("expected at most %d ranges of keys, found more", kMaxKeyRanges));
}

absl::Status KeyRanges::AddRange(const End& lower, const End& upper) {
  Bound lower_bound = Bound::kOpen, upper_bound = Bound::kOpen;
  EncodedKeys begin(codec_->kind()), end(codec_->kind()), unused(codec_->kind());
  const auto append = [&](const End& of, EncodedKeys* to) -> absl::StatusOr<bool> {
    bool open = false;
    EncodedKeys* const first = of.after ? &unused : to;
    EncodedKeys* const after = of.after ? to : &unused;
    RETURN_IF_ERROR(codec_->AppendPrefixRange(of.parts, false, first, after, &open));
    return of.after && open;
  };
  if (lower.parts.empty()) {
    AppendPlaceholder(&begin);
  } else {
    ASSIGN_OR_RETURN(const bool nothing_after, append(lower, &begin));
    if (nothing_after) return absl::OkStatus();
    lower_bound = Bound::kInclusive;
  }
  if (upper.parts.empty()) {
    AppendPlaceholder(&end);
  } else {
    ASSIGN_OR_RETURN(const bool open, append(upper, &end));
    upper_bound = open ? Bound::kOpen : Bound::kExclusive;
  }
  WithPhysicalKey(codec_->kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    AppendKey(KeyAt<Key>(begin, 0), &lower_);
    AppendKey(KeyAt<Key>(end, 0), &upper_);
  });
  lower_bounds_.push_back(lower_bound);
  upper_bounds_.push_back(upper_bound);
  return absl::OkStatus();
}

absl::Status KeyRanges::AddEqual(Parts parts, bool is_prefix) {
  if (parts.empty()) return CheckParts(parts);
  const bool has_null = BeforeNull(parts).size() != parts.size();
  if (!has_null && (which_ == Which::kTrue || !keeps_nulls())) return AddKeys(parts, is_prefix);
  if (has_null) {
    RETURN_IF_ERROR(CheckParts(parts));
    if (which_ == Which::kTrue) return absl::OkStatus();
  }
  // Not false of a key whose parts are each equal to these, or null, or compared with null.
  size_t size = parts.size();
  while (size > 0 && IsNull(parts[size - 1])) --size;
  is_prefix = is_prefix && size == parts.size();
  parts = parts.first(size);
  if (size == 0) return AddRange({}, {});
  if (BeforeNull(parts).size() != size) {
    return absl::InvalidArgumentError(
        "the negation of a key with NULL before another part: an index has keys in the order of "
        "their first parts, and does not find them by others alone");
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
    KeyRanges& is_false = outside_.emplace_back(*codec_, Which::kTrue, cancelled_);
    return is_false.AddOrder(Opposite(comparison), parts);
  }
  // Of keys that are equal up to the null it is unknown.
  const bool inclusive = has_null ? which_ == Which::kNotFalse : IsInclusive(comparison);
  if (known.empty()) {
    return which_ == Which::kNotFalse ? AddRange({}, {}) : absl::OkStatus();
  }
  if (!keeps_nulls()) {
    return IsLess(comparison) ? AddRange({}, {known, inclusive})
                              : AddRange({known, !inclusive}, {});
  }
  // The first part that differs decides, unless it is null: nulls are at one end of the keys that
  // begin with the parts before.
  const bool nulls_first = codec_->nulls() == NullPolicy::kFirst;
  for (size_t i = 0; i < known.size(); ++i) {
    std::vector<DataValue> null(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(i));
    null.emplace_back();
    const bool or_equal = inclusive && i + 1 == known.size();
    if (IsLess(comparison)) {
      RETURN_IF_ERROR(AddRange(nulls_first ? End{null, true} : End{known.first(i), false},
                               {known.first(i + 1), or_equal}));
    } else {
      RETURN_IF_ERROR(AddRange({known.first(i + 1), !or_equal},
                               nulls_first ? End{known.first(i), true} : End{null, false}));
    }
  }
  return absl::OkStatus();
}

absl::Status KeyRanges::AddBetween(const LogicalKey* lower, const LogicalKey* upper,
                                   bool upper_inclusive) {
  const Comparison at_most = upper_inclusive ? Comparison::kAtMost : Comparison::kLess;
  if (lower == nullptr && upper == nullptr) {
    if (which_ == Which::kNotFalse || !keeps_nulls()) return AddRange({}, {});
    if (codec_->parts().size() > 1) {
      return absl::InvalidArgumentError(
          "of keys of several parts it is not known which one is null");
    }
    const std::vector<DataValue> null(1);
    return codec_->nulls() == NullPolicy::kFirst ? AddRange({null, true}, {})
                                                 : AddRange({}, {null, false});
  }
  if (lower == nullptr) return AddOrder(at_most, upper->parts());
  if (upper == nullptr) return AddOrder(Comparison::kAtLeast, lower->parts());
  if (keeps_nulls() && (which_ == Which::kNotFalse || codec_->parts().size() > 1)) {
    auto& [from, to] = both_.emplace_back(KeyRanges(*codec_, which_, cancelled_),
                                          KeyRanges(*codec_, which_, cancelled_));
    RETURN_IF_ERROR(from.AddOrder(Comparison::kAtLeast, lower->parts()));
    return to.AddOrder(at_most, upper->parts());
  }
  const Parts first = BeforeNull(lower->parts()), last = BeforeNull(upper->parts());
  const bool first_null = first.size() != lower->parts().size();
  const bool last_null = last.size() != upper->parts().size();
  if (first_null || lower->parts().empty()) RETURN_IF_ERROR(CheckParts(lower->parts()));
  if (last_null || upper->parts().empty()) RETURN_IF_ERROR(CheckParts(upper->parts()));
  if (which_ == Which::kNotFalse) {
    return AddRange({first, false}, {last, upper_inclusive || last_null});
  }
  if (first.empty() || last.empty()) return absl::OkStatus();
  return AddRange({first, first_null}, {last, upper_inclusive && !last_null});
}

absl::Status KeyRanges::AddAll(const Predicate& where) {
  const KeyQuery& query = where.keys();
  if (where.kind() == Predicate::Kind::kCompare) {
    return AddOrder(where.comparison(), query.keys()[0].parts());
  }
  switch (query.kind()) {
    case KeyQuery::Kind::kKeys:
      for (size_t i = 0; i < query.keys().size(); ++i) {
        if (i % kKeysTogether == 0) RETURN_IF_ERROR(CheckNotCancelled(cancelled_));
        RETURN_IF_ERROR(AddEqual(query.keys()[i].parts(), /*is_prefix=*/false));
      }
      return absl::OkStatus();
    case KeyQuery::Kind::kLeading:
      return AddEqual(query.keys()[0].parts(), /*is_prefix=*/false);
    case KeyQuery::Kind::kPrefix:
      // The last part may go on if it is text.
      return AddEqual(query.keys()[0].parts(), /*is_prefix=*/true);
    case KeyQuery::Kind::kRange:
      break;
  }
  return AddBetween(query.lower_open() ? nullptr : &query.keys()[0],
                    query.upper_open() ? nullptr : &query.keys()[1], where.upper_inclusive());
}

absl::Status KeyRanges::Add(const Predicate& where, const GroupMember& member) {
  const absl::Status s = AddAll(where);
  return s.ok() || absl::IsCancelled(s)
             ? s
             : absl::Status(s.code(), absl::StrFormat("index '%s', %s: %s", member.name(),
                                                      where.ToString(), std::string(s.message())));
}

absl::StatusOr<EntrySet> KeyRanges::Of(const IndexVersion& version) {
  RangeBatch ranges = RangeBatch::HalfOpen(lower_.Batch(), upper_.Batch());
  ranges.lower_bounds = lower_bounds_;
  ranges.upper_bounds = upper_bounds_;
  ASSIGN_OR_RETURN(EntrySet set, EntrySet::Of(version, ranges));
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
