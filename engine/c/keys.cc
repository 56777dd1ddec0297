#include "engine/c/keys.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Returns Arrow's name and format string of the type that a part requires.
std::string Wanted(DataType type) {
  if (IsText(type)) return "utf8 or binary ('u', 'U', 'vu', 'z', 'Z', 'vz', 'w:N')";
  return absl::StrFormat("%s ('%s')", ArrowTypeName(ArrowFormat(type)), ArrowFormat(type));
}

}  // namespace

absl::Status CheckTypes(const KeyCodec& codec, absl::Span<const ArrowColumn> columns) {
  for (size_t part = 0; part < columns.size(); ++part) {
    const DataType type = codec.parts()[part];
    const DataType found = columns[part].type();
    if (found == type || (IsText(found) && IsText(type))) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("part %d (%s): expected an array of %s, found one of %s", part + 1,
                        DataTypeName(type), Wanted(type), columns[part].type_name()));
  }
  return absl::OkStatus();
}

absl::Status InKey(size_t key, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrFormat("key %d: %s", key, status.message()));
}

absl::Status KeysIn::Read(const KeyCodec& codec, const ArrowSchema* schema,
                          const ArrowArray* array) {
  ASSIGN_OR_RETURN(const std::vector<ArrowColumn> columns, ReadArrowColumns(schema, array));
  const size_t parts = codec.parts().size();
  if (columns.size() != parts) {
    return absl::InvalidArgumentError(absl::StrFormat("expected keys of %d part%s, found %d", parts,
                                                      parts == 1 ? "" : "s", columns.size()));
  }
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
  encoded_.Clear(codec.kind());
  ASSIGN_OR_RETURN(batch_, KeysOf(codec, parts, &encoded_));
  return absl::OkStatus();
}

}  // namespace cairn
