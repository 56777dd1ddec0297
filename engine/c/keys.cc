#include "engine/c/keys.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

bool IsBytes(ArrowType type) {
  return type >= ArrowType::kBytes;
}

// The part that a column of this type has the values of, text standing for bytes, too.
KeyType PartOf(ArrowType type) {
  switch (type) {
    case ArrowType::kU8:
      return KeyType::kU8;
    case ArrowType::kU16:
      return KeyType::kU16;
    case ArrowType::kU32:
      return KeyType::kU32;
    case ArrowType::kU64:
      return KeyType::kU64;
    case ArrowType::kI8:
      return KeyType::kI8;
    case ArrowType::kI16:
      return KeyType::kI16;
    case ArrowType::kI32:
      return KeyType::kI32;
    case ArrowType::kI64:
      return KeyType::kI64;
    case ArrowType::kF32:
      return KeyType::kF32;
    case ArrowType::kF64:
      return KeyType::kF64;
    case ArrowType::kBytes:
    case ArrowType::kLargeBytes:
    case ArrowType::kBytesView:
    case ArrowType::kFixedBytes:
      break;
  }
  return KeyType::kText;
}

// Arrow's name of the type that a part wants, and its format.
std::string_view Wanted(KeyType type) {
  switch (type) {
    case KeyType::kU8:
      return "uint8 ('C')";
    case KeyType::kU16:
      return "uint16 ('S')";
    case KeyType::kU32:
      return "uint32 ('I')";
    case KeyType::kU64:
      return "uint64 ('L')";
    case KeyType::kI8:
      return "int8 ('c')";
    case KeyType::kI16:
      return "int16 ('s')";
    case KeyType::kI32:
      return "int32 ('i')";
    case KeyType::kI64:
      return "int64 ('l')";
    case KeyType::kF32:
      return "float ('f')";
    case KeyType::kF64:
      return "double ('g')";
    case KeyType::kText:
    case KeyType::kBytes:
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

// The columns as a codec takes them: numbers where they are, or copied where they are not aligned.
class PartColumns {
 public:
  explicit PartColumns(absl::Span<const ArrowColumn> columns) {
    for (const ArrowColumn& column : columns) {
      Add(column);
      parts_.back().validity = column.validity();
      parts_.back().first_bit = column.first_bit();
    }
  }
  absl::Span<const PartColumn> parts() const { return parts_; }

 private:
  void Add(const ArrowColumn& column) {
    switch (column.type()) {
      case ArrowType::kU8:
        return AddNumbers<uint8_t>(column);
      case ArrowType::kU16:
        return AddNumbers<uint16_t>(column);
      case ArrowType::kU32:
        return AddNumbers<uint32_t>(column);
      case ArrowType::kU64:
        return AddNumbers<uint64_t>(column);
      case ArrowType::kI8:
        return AddNumbers<int8_t>(column);
      case ArrowType::kI16:
        return AddNumbers<int16_t>(column);
      case ArrowType::kI32:
        return AddNumbers<int32_t>(column);
      case ArrowType::kI64:
        return AddNumbers<int64_t>(column);
      case ArrowType::kF32:
        return AddNumbers<float>(column);
      case ArrowType::kF64:
        return AddNumbers<double>(column);
      case ArrowType::kBytes:
      case ArrowType::kLargeBytes:
      case ArrowType::kBytesView:
      case ArrowType::kFixedBytes:
        break;
    }
    auto strings = std::make_shared<std::vector<std::string_view>>(column.size());
    for (size_t i = 0; i < column.size(); ++i) (*strings)[i] = column.bytes(i);
    parts_.push_back({absl::MakeConstSpan(*strings)});
    owners_.push_back(std::move(strings));
  }

  template <typename T>
  void AddNumbers(const ArrowColumn& column) {
    if (column.aligned<T>() != nullptr) {
      parts_.push_back({absl::MakeConstSpan(column.aligned<T>(), column.size())});
      return;
    }
    auto numbers = std::make_shared<std::vector<T>>(column.size());
    for (size_t i = 0; i < column.size(); ++i) (*numbers)[i] = column.number<T>(i);
    parts_.push_back({absl::MakeConstSpan(*numbers)});
    owners_.push_back(std::move(numbers));
  }

  std::vector<PartColumn> parts_;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace

absl::StatusOr<KeyCodec> CodecOf(absl::Span<const ArrowColumn> columns, NullPolicy nulls) {
  std::vector<KeyType> parts;
  for (const ArrowColumn& column : columns) parts.push_back(PartOf(column.type()));
  return KeyCodec::Create(parts, nulls);
}

KeyValue ValueOf(const ArrowColumn& column, size_t i) {
  if (column.IsNull(i)) return std::monostate();
  switch (column.type()) {
    case ArrowType::kU8:
      return uint64_t{column.number<uint8_t>(i)};
    case ArrowType::kU16:
      return uint64_t{column.number<uint16_t>(i)};
    case ArrowType::kU32:
      return uint64_t{column.number<uint32_t>(i)};
    case ArrowType::kU64:
      return column.number<uint64_t>(i);
    case ArrowType::kI8:
      return int64_t{column.number<int8_t>(i)};
    case ArrowType::kI16:
      return int64_t{column.number<int16_t>(i)};
    case ArrowType::kI32:
      return int64_t{column.number<int32_t>(i)};
    case ArrowType::kI64:
      return column.number<int64_t>(i);
    case ArrowType::kF32:
      return double{column.number<float>(i)};
    case ArrowType::kF64:
      return column.number<double>(i);
    case ArrowType::kBytes:
    case ArrowType::kLargeBytes:
    case ArrowType::kBytesView:
    case ArrowType::kFixedBytes:
      break;
  }
  return column.bytes(i);
}

absl::Status CheckTypes(const KeyCodec& codec, absl::Span<const ArrowColumn> columns) {
  for (size_t part = 0; part < columns.size(); ++part) {
    const KeyType type = codec.parts()[part];
    const KeyType found = PartOf(columns[part].type());
    if (found == type || (found == KeyType::kText && type == KeyType::kBytes)) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("part %d (%s): expected an array of %s, found one of format '%s'", part + 1,
                        KeyTypeName(type), Wanted(type), columns[part].format()));
  }
  return absl::OkStatus();
}

absl::Status InKey(size_t key, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrFormat("key %d: %s", key, status.message()));
}

absl::Status KeysIn::Read(const KeyCodec& codec, const ArrowSchema* schema,
                          const ArrowArray* array) {
  ASSIGN_OR_RETURN(const std::vector<ArrowColumn> columns, ReadColumns(schema, array));
  RETURN_IF_ERROR(CheckParts(codec, columns.size()));
  RETURN_IF_ERROR(CheckTypes(codec, columns));
  return Encode(codec, columns);
}

absl::Status KeysIn::Encode(const KeyCodec& codec, absl::Span<const ArrowColumn> columns) {
  if (columns.size() == 1 && codec.nulls() == NullPolicy::kSkip) {
    const ArrowColumn& column = columns[0];
    RETURN_IF_ERROR(CheckNoNull(column));
    if (TakeNumbers(codec, column)) return absl::OkStatus();
    if (IsBytes(column.type())) {
      views_ = AlignedBuffer<std::string_view>(column.size());
      for (size_t i = 0; i < column.size(); ++i) views_[i] = column.bytes(i);
      batch_ = std::as_const(views_).span();
      return absl::OkStatus();
    }
  }
  encoded_.Clear(codec.kind());
  RETURN_IF_ERROR(codec.AppendColumns(PartColumns(columns).parts(), &encoded_));
  batch_ = encoded_.Batch();
  return absl::OkStatus();
}

// Whether the column's numbers are physical keys, and lie so that they can be read as such.
bool KeysIn::TakeNumbers(const KeyCodec& codec, const ArrowColumn& column) {
  if (codec.parts()[0] == KeyType::kU32 && column.aligned<uint32_t>() != nullptr) {
    batch_ = absl::MakeConstSpan(column.aligned<uint32_t>(), column.size());
  } else if (codec.parts()[0] == KeyType::kU64 && column.aligned<uint64_t>() != nullptr) {
    batch_ = absl::MakeConstSpan(column.aligned<uint64_t>(), column.size());
  } else {
    return false;
  }
  return true;
}

}  // namespace cairn
