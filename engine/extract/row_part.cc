#include "engine/extract/row_part.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/extract/key_part.h"

namespace cairn {
namespace {

PartRead LocateField(std::string_view value, const KeySource& source, std::string_view* bytes) {
  for (uint32_t field = source.field; field != 0; --field) {
    const size_t end = value.find(source.delimiter);
    if (end == std::string_view::npos) return PartRead::kMissing;
    value.remove_prefix(end + 1);
  }
  *bytes = value.substr(0, value.find(source.delimiter));
  return PartRead::kFound;
}

PartRead LocateColumn(const RowView& row, std::string_view name, std::string_view* bytes) {
  if (row.columns.empty() && name.empty()) {
    *bytes = row.value;
    return PartRead::kFound;
  }
  for (const ColumnView& column : row.columns) {
    if (column.name != name) continue;
    *bytes = column.value;
    return PartRead::kFound;
  }
  return PartRead::kMissing;
}

}  // namespace

absl::StatusOr<RowPart> RowPart::Compile(const KeyPart& part, std::string_view name,
                                         const PartLayout& layout) {
  RowPart compiled;
  compiled.source = part.source;
  compiled.layout = layout;
  compiled.endian = part.endian;
  compiled.width = FixedWidth(part.type);
  compiled.title = absl::StrFormat("%s (%s)", name, PartText(part));
  if (absl::Status sound = CheckPart(part); !sound.ok()) return compiled.Here(sound);
  if (part.source.kind == KeySource::Kind::kJson) {
    absl::StatusOr<JsonPointer> pointer = JsonPointer::Parse(part.source.name);
    if (!pointer.ok()) return compiled.Here(pointer.status());
    compiled.pointer = std::make_shared<const JsonPointer>(*std::move(pointer));
  } else if (part.source.kind == KeySource::Kind::kCustom) {
    absl::StatusOr<std::shared_ptr<const KeyExtractor>> custom = FindExtractor(part.source.name);
    if (!custom.ok()) return compiled.Here(custom.status());
    compiled.custom = *std::move(custom);
  }
  return compiled;
}

PartRead RowPart::ReadElsewhere(const RowView& row, std::string_view* bytes) const {
  switch (source.kind) {
    case KeySource::Kind::kField:
      return LocateField(row.value, source, bytes);
    case KeySource::Kind::kColumn:
      return LocateColumn(row, source.name, bytes);
    default:
      return PartRead::kMissing;  // not single-valued
  }
}

PartRead RowPart::ReadDecimal(std::string_view text, uint64_t* ordered) const {
  DataValue value;
  uint64_t bits = 0;
  if (!ParseNumber(text, layout.type, &value).ok() || !NumberBits(value, layout.type, &bits).ok()) {
    return PartRead::kUnreadable;
  }
  *ordered = OrderedBits(bits, layout.type);
  return PartRead::kFound;
}

PartRead RowPart::ReadValue(const RowView& row, DataValue* value) const {
  if (width == 0) {
    std::string_view bytes;
    const PartRead read = ReadBytes(row, &bytes);
    if (read == PartRead::kFound) *value = bytes;
    return read;
  }
  uint64_t ordered = 0;
  const PartRead read = ReadNumber(row, &ordered);
  if (read != PartRead::kFound) return read;
  return OrderedNumber(layout.type, ordered, value).ok() ? read : PartRead::kUnreadable;
}

absl::Status RowPart::Unreadable(const RowView& row) const {
  std::string_view bytes;
  if (ReadBytes(row, &bytes) == PartRead::kUnreadable) {
    const size_t size =
        source.kind == KeySource::Kind::kKey ? row.primary_key.size() : row.value.size();
    return Here(absl::InvalidArgumentError(
        absl::StrFormat("expected %d bytes from offset %d, found %d", *source.length, source.offset,
                        size - source.offset)));
  }
  if (source.kind == KeySource::Kind::kField) {
    DataValue value;
    return Here(ParseNumber(bytes, layout.type, &value));
  }
  return Here(absl::InvalidArgumentError(
      absl::StrFormat("expected %d bytes, found %d", width, bytes.size())));
}

absl::Status RowPart::Here(const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrFormat("%s: %s", title, status.message()));
}

}  // namespace cairn
