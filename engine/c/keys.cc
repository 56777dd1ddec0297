#include "engine/c/keys.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Returns Arrow's name and format string of the type that a part requires.
std::string_view Wanted(DataType type) {
  switch (type) {
    case DataType::kU8:
      return "uint8 ('C')";
    case DataType::kU16:
      return "uint16 ('S')";
    case DataType::kU32:
      return "uint32 ('I')";
    case DataType::kU64:
      return "uint64 ('L')";
    case DataType::kI8:
      return "int8 ('c')";
    case DataType::kI16:
      return "int16 ('s')";
    case DataType::kI32:
      return "int32 ('i')";
    case DataType::kI64:
      return "int64 ('l')";
    case DataType::kF32:
      return "float ('f')";
    case DataType::kF64:
      return "double ('g')";
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  return "utf8 or binary ('u', 'U', 'vu', 'z', 'Z', 'vz', 'w:N')";
}

absl::Status CheckParts(const KeyCodec& codec, size_t columns) {
  if (columns == codec.parts().size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("expected keys of %d part%s, found %d",
                                                    codec.parts().size(),
                                                    codec.parts().size() == 1 ? "" : "s", columns));
}

absl::Status CheckNoNull(const ArrowColumn& column) {
  const size_t null = column.FirstNull();
  if (null == column.size()) return absl::OkStatus();
  return InKey(null, absl::InvalidArgumentError("expected a value, found null"));
}

}  // namespace

absl::StatusOr<KeyCodec> CodecOf(absl::Span<const ArrowColumn> columns, NullPolicy nulls) {
  std::vector<DataType> parts;
  for (const ArrowColumn& column : columns) parts.push_back(column.type());
  return KeyCodec::Create(parts, nulls);
}

absl::Status CheckTypes(const KeyCodec& codec, absl::Span<const ArrowColumn> columns) {
  for (size_t part = 0; part < columns.size(); ++part) {
    const DataType type = codec.parts()[part];
    const DataType found = columns[part].type();
    if (found == type || (IsText(found) && IsText(type))) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("part %d (%s): expected an array of %s, found one of format '%s'", part + 1,
                        DataTypeName(type), Wanted(type), columns[part].format()));
  }
  return absl::OkStatus();
}

absl::Status InKey(size_t key, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrFormat("key %d: %s", key, status.message()));
}

absl::Status KeysIn::Read(const KeyCodec& codec, const ArrowSchema* schema,
                          const ArrowArray* array) {
  ASSIGN_OR_RETURN(const std::vector<ArrowColumn> columns, ReadArrowColumns(schema, array));
  RETURN_IF_ERROR(CheckParts(codec, columns.size()));
  RETURN_IF_ERROR(CheckTypes(codec, columns));
  return Encode(codec, columns);
}

absl::Status KeysIn::Encode(const KeyCodec& codec, absl::Span<const ArrowColumn> columns) {
  values_.clear();
  std::vector<ColumnSpan> parts;
  for (const ArrowColumn& column : columns) {
    ASSIGN_OR_RETURN(ArrowValues values, ArrowValues::Of(column.type(), {&column, 1}));
    parts.push_back(values.part());
    values_.push_back(std::move(values));
  }
  if (columns.size() == 1 && codec.nulls() == NullPolicy::kSkip) {
    RETURN_IF_ERROR(CheckNoNull(columns[0]));
    if (TakeKeys(parts[0])) return absl::OkStatus();
  }
  encoded_.Clear(codec.kind());
  RETURN_IF_ERROR(codec.AppendColumns(parts, &encoded_));
  batch_ = encoded_.Batch();
  return absl::OkStatus();
}

// Sets batch_ to the part's values if they are physical keys as they are. Returns whether it did.
bool KeysIn::TakeKeys(const ColumnSpan& part) {
  if (const auto* u32 = std::get_if<absl::Span<const uint32_t>>(&part.values)) {
    batch_ = *u32;
  } else if (const auto* u64 = std::get_if<absl::Span<const uint64_t>>(&part.values)) {
    batch_ = *u64;
  } else if (const auto* text = std::get_if<absl::Span<const std::string_view>>(&part.values)) {
    batch_ = *text;
  } else {
    return false;
  }
  return true;
}

}  // namespace cairn
