#include "engine/where/key_ranges_of.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

bool HasNull(const LogicalKey& key) {
  return std::any_of(key.parts().begin(), key.parts().end(), [](const KeyValue& part) {
    return std::holds_alternative<std::monostate>(part);
  });
}

void AppendPlaceholder(KeyColumn* keys) {
  switch (keys->kind()) {
    case KeyKind::kU32:
      return keys->AppendU32(0);
    case KeyKind::kU64:
      return keys->AppendU64(0);
    case KeyKind::kBytes:
      return keys->AppendBytes("");
  }
}

// One end of a range: the first key that begins with `key`, or the first one behind all of these.
absl::Status AppendEnd(const KeyCodec& codec, const LogicalKey& key, bool behind, KeyColumn* keys,
                       bool* is_open) {
  KeyColumn first(codec.kind()), after(codec.kind());
  bool open = false;
  RETURN_IF_ERROR(codec.AppendPrefixRange(key.parts(), false, &first, &after, &open));
  *is_open = behind && open;
  KeyColumn& from = behind ? after : first;
  WithPhysicalKey(codec.kind(), [&](auto type) {
    AppendKey(KeyAt<typename decltype(type)::type>(from, 0), keys);
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status KeyRanges::AddKey(const KeyCodec& codec, const LogicalKey& key, bool is_prefix) {
  if (HasNull(key)) return has_null_ = true, absl::OkStatus();
  bool open = false;
  RETURN_IF_ERROR(codec.AppendPrefixRange(key.parts(), is_prefix, &lower_, &upper_, &open));
  lower_bounds_.push_back(Bound::kInclusive);
  upper_bounds_.push_back(open ? Bound::kOpen : Bound::kExclusive);
  return absl::OkStatus();
}

absl::Status KeyRanges::AddRange(const KeyCodec& codec, const LogicalKey* lower,
                                 bool lower_exclusive, const LogicalKey* upper,
                                 bool upper_inclusive) {
  if ((lower != nullptr && HasNull(*lower)) || (upper != nullptr && HasNull(*upper))) {
    return has_null_ = true, absl::OkStatus();
  }
  Bound lower_bound = Bound::kOpen, upper_bound = Bound::kOpen;
  KeyColumn begin(codec.kind()), end(codec.kind());
  bool open = false;
  if (lower != nullptr) {
    RETURN_IF_ERROR(AppendEnd(codec, *lower, lower_exclusive, &begin, &open));
    if (open) return absl::OkStatus();  // behind the last key there is nothing
    lower_bound = Bound::kInclusive;
  } else {
    AppendPlaceholder(&begin);
  }
  if (upper != nullptr) {
    RETURN_IF_ERROR(AppendEnd(codec, *upper, upper_inclusive, &end, &open));
    upper_bound = open ? Bound::kOpen : Bound::kExclusive;
  } else {
    AppendPlaceholder(&end);
  }
  WithPhysicalKey(codec.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    AppendKey(KeyAt<Key>(begin, 0), &lower_);
    AppendKey(KeyAt<Key>(end, 0), &upper_);
  });
  lower_bounds_.push_back(lower_bound);
  upper_bounds_.push_back(upper_bound);
  return absl::OkStatus();
}

absl::Status KeyRanges::AddAll(const Predicate& where, const KeyCodec& codec) {
  const KeyQuery& query = where.keys();
  if (where.kind() == Predicate::Kind::kCompare) {
    const LogicalKey* const key = query.keys().data();
    switch (where.comparison()) {
      case Predicate::Comparison::kLess:
        return AddRange(codec, nullptr, false, key, false);
      case Predicate::Comparison::kAtMost:
        return AddRange(codec, nullptr, false, key, true);
      case Predicate::Comparison::kGreater:
        return AddRange(codec, key, true, nullptr, false);
      case Predicate::Comparison::kAtLeast:
        return AddRange(codec, key, false, nullptr, false);
    }
  }
  switch (query.kind()) {
    case KeyQuery::Kind::kKeys:
      for (const LogicalKey& key : query.keys()) {
        RETURN_IF_ERROR(AddKey(codec, key, /*is_prefix=*/false));
      }
      return absl::OkStatus();
    case KeyQuery::Kind::kLeading:
      return AddKey(codec, query.keys()[0], /*is_prefix=*/false);
    case KeyQuery::Kind::kPrefix: {
      // The last part may go on where it is text.
      const absl::Span<const KeyValue> parts = query.keys()[0].parts();
      if (parts.empty()) break;
      return AddKey(codec, query.keys()[0], /*is_prefix=*/true);
    }
    case KeyQuery::Kind::kRange:
      return AddRange(codec, query.lower_open() ? nullptr : &query.keys()[0], false,
                      query.upper_open() ? nullptr : &query.keys()[1], where.upper_inclusive());
  }
  return absl::InvalidArgumentError("a prefix of no parts");
}

absl::Status KeyRanges::Add(const Predicate& where, const GroupMember& member) {
  const absl::Status s = AddAll(where, member.codec());
  return s.ok() ? s
                : absl::Status(s.code(), absl::StrFormat("index '%s', %s: %s", member.name(),
                                                         where.ToString(), s.message()));
}

RangeBatch KeyRanges::batch() {
  RangeBatch ranges = RangeBatch::HalfOpen(lower_.Batch(), upper_.Batch());
  ranges.lower_bounds = lower_bounds_;
  ranges.upper_bounds = upper_bounds_;
  return ranges;
}

}  // namespace cairn
