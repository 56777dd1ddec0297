#include "index/query/range_column.h"

#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Appends an arbitrary key for a bound that is never read.
void AppendPlaceholder(EncodedKeys* keys) {
  WithPhysicalKey(keys->kind(),
                  [&](auto type) { AppendKey(typename decltype(type)::type(), keys); });
}

absl::Status InPlace(std::string_view place, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrFormat("%s: %s", place, status.message()));
}

// An end without parts would be open.
absl::Status CheckHasParts(const KeyCodec& codec, const KeyEnd& end) {
  if (!end.parts.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("expected 1 to %d values of leading parts, found 0", codec.parts().size()));
}

// Appends the key of an end. Returns the bound of the range there, which is kOpen for an end after
// all keys.
absl::StatusOr<Bound> AppendEnd(const KeyCodec& codec, const KeyEnd& end, bool is_lower,
                                EncodedKeys* keys) {
  if (end.parts.empty()) {
    AppendPlaceholder(keys);
    return Bound::kOpen;
  }
  const Bound before = is_lower ? Bound::kInclusive : Bound::kExclusive;
  const Bound after = is_lower ? Bound::kExclusive : Bound::kInclusive;
  if (end.parts.size() == codec.parts().size()) {
    RETURN_IF_ERROR(codec.Append(end.parts, keys));
    return end.after ? after : before;
  }
  EncodedKeys unused(codec.kind());
  bool open = false;
  EncodedKeys* const first = end.after ? &unused : keys;
  EncodedKeys* const beyond = end.after ? keys : &unused;
  RETURN_IF_ERROR(codec.AppendPrefixRange(end.parts, false, first, beyond, &open));
  return end.after && open ? Bound::kOpen : before;
}

}  // namespace

void RangeColumn::Clear(PhysicalType kind) {
  lower_.Clear(kind);
  upper_.Clear(kind);
  lower_bounds_.clear();
  upper_bounds_.clear();
  after_.clear();
}

void RangeColumn::AppendRanges(const RangeBatch& ranges) {
  const size_t before = size();
  AppendBatch(ranges.lower, &lower_);
  AppendBatch(ranges.upper, &upper_);
  for (size_t i = 0; i < ranges.size(); ++i) {
    lower_bounds_.push_back(ranges.lower_bound_of(i));
    upper_bounds_.push_back(ranges.upper_bound_of(i));
  }
  if (ranges.after.empty() && after_.empty()) return;
  after_.resize(before);
  after_.insert(after_.end(), ranges.after.begin(), ranges.after.end());
  after_.resize(size());
}

absl::Status RangeColumn::AppendPrefix(const KeyCodec& codec, absl::Span<const DataValue> parts,
                                       bool last_is_prefix) {
  bool open = false;
  RETURN_IF_ERROR(codec.AppendPrefixRange(parts, last_is_prefix, &lower_, &upper_, &open));
  lower_bounds_.push_back(Bound::kInclusive);
  upper_bounds_.push_back(open ? Bound::kOpen : Bound::kExclusive);
  return absl::OkStatus();
}

absl::Status RangeColumn::AppendBetween(const KeyCodec& codec, const KeyEnd& lower,
                                        const KeyEnd& upper) {
  const size_t before = size();
  absl::StatusOr<Bound> from = AppendEnd(codec, lower, /*is_lower=*/true, &lower_);
  if (!from.ok()) return InPlace("lower end", from.status());
  absl::StatusOr<Bound> to = AppendEnd(codec, upper, /*is_lower=*/false, &upper_);
  if (!to.ok()) {
    lower_.Truncate(before);
    return InPlace("upper end", to.status());
  }
  if (lower.after && *from == Bound::kOpen) {
    // There is no key after these parts, so the range is empty.
    lower_.Truncate(before);
    upper_.Truncate(before);
    AppendPlaceholder(&lower_);
    AppendPlaceholder(&upper_);
    from = Bound::kInclusive;
    to = Bound::kExclusive;
  }
  lower_bounds_.push_back(*from);
  upper_bounds_.push_back(*to);
  return absl::OkStatus();
}

RangeBatch RangeColumn::Ranges() {
  RangeBatch ranges = is_keys() ? RangeBatch::Equal(lower_.Batch())
                                : RangeBatch::HalfOpen(lower_.Batch(), upper_.Batch());
  ranges.lower_bounds = lower_bounds_;
  ranges.upper_bounds = upper_bounds_;
  ranges.after = after_;
  return ranges;
}

absl::Status CheckPrefix(const KeyCodec& codec, absl::Span<const DataValue> parts) {
  if (parts.empty() || parts.size() != codec.parts().size() ||
      !std::holds_alternative<std::string_view>(parts.back())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("expected fewer than the key's %d parts, as parts are compared as a whole; "
                      "use BytePrefix for "
                      "keys whose last part begins so, or the key itself",
                      codec.parts().size()));
}

absl::Status RangesOf(const KeyQuery& query, const KeyCodec& codec, RangeColumn* ranges) {
  ranges->Clear(codec.kind());
  const absl::Span<const LogicalKey> keys = query.keys();
  switch (query.kind()) {
    case KeyQuery::Kind::kKeys:
      for (size_t i = 0; i < keys.size(); ++i) {
        absl::Status s = ranges->AppendKey(codec, keys[i].parts());
        if (s.ok()) continue;
        if (keys[i].parts().size() == 1 && codec.parts().size() > 1) {
          s = absl::Status(
              s.code(), absl::StrFormat("%s; a key of several parts needs its own braces: {{a, b}}",
                                        s.message()));
        }
        return InPlace(absl::StrFormat("key %d of %d", i + 1, keys.size()), s);
      }
      break;
    case KeyQuery::Kind::kPrefix:
      RETURN_IF_ERROR(InPlace("prefix", CheckPrefix(codec, keys[0].parts())));
      RETURN_IF_ERROR(InPlace("prefix", ranges->AppendPrefix(codec, keys[0].parts(), false)));
      break;
    case KeyQuery::Kind::kBytePrefix:
      RETURN_IF_ERROR(InPlace("prefix", ranges->AppendPrefix(codec, keys[0].parts(), true)));
      break;
    case KeyQuery::Kind::kRange: {
      KeyEnd lower, upper;
      if (query.lower_bound() != Bound::kOpen) {
        lower = {keys[0].parts(), query.lower_bound() == Bound::kExclusive};
        RETURN_IF_ERROR(InPlace("lower end", CheckHasParts(codec, lower)));
      }
      if (query.upper_bound() != Bound::kOpen) {
        upper = {keys[1].parts(), query.upper_bound() == Bound::kInclusive};
        RETURN_IF_ERROR(InPlace("upper end", CheckHasParts(codec, upper)));
      }
      RETURN_IF_ERROR(ranges->AppendBetween(codec, lower, upper));
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
