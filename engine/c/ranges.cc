#include "engine/c/ranges.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "engine/c/error.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status ReadBounds(const uint8_t* values, size_t size, Bound by_default, std::string_view name,
                        std::vector<Bound>* bounds) {
  if (values == nullptr) return absl::OkStatus();
  bounds->resize(size);
  for (size_t i = 0; i < size; ++i) {
    RETURN_IF_ERROR(ReadBound(values[i], by_default, name, &(*bounds)[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckUnused(bool used, std::string_view name, std::string_view where) {
  if (!used) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s: expected none %s", name, where));
}

absl::Status InField(std::string_view name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrFormat("%s: %s", name, status.message()));
}

}  // namespace

absl::Status ReadBound(int32_t value, Bound by_default, std::string_view name, Bound* bound) {
  switch (value) {
    case CAIRN_BOUND_DEFAULT:
      *bound = by_default;
      return absl::OkStatus();
    case CAIRN_BOUND_INCLUSIVE:
      *bound = Bound::kInclusive;
      return absl::OkStatus();
    case CAIRN_BOUND_EXCLUSIVE:
      *bound = Bound::kExclusive;
      return absl::OkStatus();
    case CAIRN_BOUND_OPEN:
      *bound = Bound::kOpen;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: expected a bound, 0 to 3, found %d", name, value));
  }
}

absl::Status RangesIn::Read(const KeyCodec& codec, const cairn_ranges* given, bool takes_cursors) {
  RETURN_IF_ERROR(CheckNotNull(given, "ranges"));
  ASSIGN_OR_RETURN(const cairn_ranges ranges, ReadOptions(given, "ranges"));
  switch (ranges.kind) {
    case CAIRN_BETWEEN:
      RETURN_IF_ERROR(ReadBetween(codec, ranges));
      break;
    case CAIRN_EQUAL:
    case CAIRN_PREFIX:
      RETURN_IF_ERROR(ReadLeading(codec, ranges));
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrFormat("kind: expected 0 to %d, found %d", CAIRN_PREFIX, ranges.kind));
  }
  if (ranges.after == nullptr) return absl::OkStatus();
  if (!takes_cursors)
    return CheckUnused(true, "after", "except for a scan of an index of a database");
  return ReadCursors(ranges);
}

absl::Status RangesIn::ReadBetween(const KeyCodec& codec, const cairn_ranges& ranges) {
  Bound lower = Bound::kOpen, upper = Bound::kOpen;
  if (ranges.lower != nullptr) {
    RETURN_IF_ERROR(InField("lower", lower_.Read(codec, ranges.lower_schema, ranges.lower)));
    RETURN_IF_ERROR(ReadBound(ranges.lower_bound, Bound::kInclusive, "lower_bound", &lower));
    RETURN_IF_ERROR(ReadBounds(ranges.lower_bounds, lower_.batch().size(), Bound::kInclusive,
                               "lower_bounds", &lower_bounds_));
  } else {
    RETURN_IF_ERROR(CheckUnused(ranges.lower_bound != 0 || ranges.lower_bounds != nullptr,
                                "lower_bound", "without lower keys"));
  }
  if (ranges.upper != nullptr) {
    RETURN_IF_ERROR(InField("upper", upper_.Read(codec, ranges.upper_schema, ranges.upper)));
    RETURN_IF_ERROR(ReadBound(ranges.upper_bound, Bound::kExclusive, "upper_bound", &upper));
    RETURN_IF_ERROR(ReadBounds(ranges.upper_bounds, upper_.batch().size(), Bound::kExclusive,
                               "upper_bounds", &upper_bounds_));
  } else {
    RETURN_IF_ERROR(CheckUnused(ranges.upper_bound != 0 || ranges.upper_bounds != nullptr,
                                "upper_bound", "without upper keys"));
  }
  if (ranges.lower == nullptr && ranges.upper == nullptr) {
    batch_ = RangeBatch::Everything(codec.kind());
    return absl::OkStatus();
  }
  // The keys of an open end are not read, but the batch requires that number of keys.
  batch_.lower = ranges.lower != nullptr ? lower_.batch() : upper_.batch();
  batch_.upper = ranges.upper != nullptr ? upper_.batch() : lower_.batch();
  if (batch_.lower.size() != batch_.upper.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected equal numbers of upper and lower keys, found %d and %d",
                        batch_.upper.size(), batch_.lower.size()));
  }
  batch_.lower_bound = lower;
  batch_.upper_bound = upper;
  batch_.lower_bounds = lower_bounds_;
  batch_.upper_bounds = upper_bounds_;
  return absl::OkStatus();
}

absl::Status RangesIn::ReadLeading(const KeyCodec& codec, const cairn_ranges& ranges) {
  const bool prefix = ranges.kind == CAIRN_PREFIX;
  const std::string_view where = prefix ? "with CAIRN_PREFIX" : "with CAIRN_EQUAL";
  RETURN_IF_ERROR(CheckUnused(ranges.upper != nullptr, "upper", where));
  RETURN_IF_ERROR(
      CheckUnused(ranges.lower_bound != 0 || ranges.lower_bounds != nullptr, "lower_bound", where));
  RETURN_IF_ERROR(
      CheckUnused(ranges.upper_bound != 0 || ranges.upper_bounds != nullptr, "upper_bound", where));
  auto read = ReadArrowColumns(ranges.lower_schema, ranges.lower);
  RETURN_IF_ERROR(InField("lower", read.status()));
  const std::vector<ArrowColumn>& columns = *read;
  if (columns.size() > codec.parts().size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("lower: expected keys of at most %d parts, found %d", codec.parts().size(),
                        columns.size()));
  }
  RETURN_IF_ERROR(InField("lower", CheckTypes(codec, columns)));
  if (!prefix && columns.size() == codec.parts().size()) {
    RETURN_IF_ERROR(InField("lower", lower_.Encode(codec, columns)));
    batch_ = RangeBatch::Equal(lower_.batch());
    return absl::OkStatus();
  }
  if (prefix && KeysAreValues(codec) && codec.kind() == PhysicalType::kBytes) {
    RETURN_IF_ERROR(InField("lower", lower_.Encode(codec, columns)));
    batch_ = RangeBatch::Prefix(lower_.batch());
    return absl::OkStatus();
  }
  return InField("lower", AppendLeading(codec, columns, prefix));
}

absl::Status RangesIn::AppendLeading(const KeyCodec& codec, absl::Span<const ArrowColumn> columns,
                                     bool last_is_prefix) {
  leading_.Clear(codec.kind());
  std::vector<DataValue> values(columns.size());
  for (size_t i = 0; i < columns[0].size(); ++i) {
    for (size_t part = 0; part < columns.size(); ++part) values[part] = columns[part].value(i);
    const absl::Status status = leading_.AppendPrefix(codec, values, last_is_prefix);
    if (!status.ok()) return InKey(i, status);
  }
  batch_ = leading_.Ranges();
  return absl::OkStatus();
}

absl::Status RangesIn::ReadCursors(const cairn_ranges& ranges) {
  auto columns = ReadArrowColumns(ranges.after_schema, ranges.after);
  RETURN_IF_ERROR(InField("after", columns.status()));
  if (columns->size() != 1 || !IsText(columns->front().type())) {
    return absl::InvalidArgumentError("after: expected an array of binary");
  }
  const ArrowColumn& column = columns->front();
  if (column.size() != batch_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("after: expected %d cursors, found %d", batch_.size(), column.size()));
  }
  cursors_.resize(column.size());
  for (size_t i = 0; i < column.size(); ++i) {
    if (!column.IsNull(i)) cursors_[i] = std::get<std::string_view>(column.value(i));
  }
  batch_.after = cursors_;
  return absl::OkStatus();
}

}  // namespace cairn
