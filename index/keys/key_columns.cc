// ColumnSpan and KeyCodec::AppendColumns.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/key_codec.h"
#include "index/keys/key_encoding.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Packed keys of several parts are composed in blocks of kBlock keys, which stay in a cache.
constexpr size_t kBlock = 1024;

// The part type whose values are of this C++ type; kText also means bytes.
template <typename T>
constexpr DataType TypeOf() {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return DataType::kText;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? DataType::kF32 : DataType::kF64;
  } else {
    constexpr DataType kUnsigned[] = {DataType::kU8, DataType::kU16, DataType::kU32,
                                      DataType::kU64};
    constexpr DataType kSigned[] = {DataType::kI8, DataType::kI16, DataType::kI32, DataType::kI64};
    constexpr size_t kWidth = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kWidth] : kUnsigned[kWidth];
  }
}

DataType TypeOf(const ColumnSpan& column) {
  return std::visit(
      [](const auto& span) { return TypeOf<typename std::decay_t<decltype(span)>::value_type>(); },
      column.values);
}

// A number as by OrderedBits(bits, type), with the width of its type.
template <typename T>
auto Ordered(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return OrderedBits(value);
  } else {
    using Bits = std::make_unsigned_t<T>;
    constexpr Bits kFlip = std::is_signed_v<T> ? Bits{1} << (8 * sizeof(T) - 1) : 0;
    return static_cast<Bits>(static_cast<Bits>(value) ^ kFlip);
  }
}

absl::Status InColumn(const KeyCodec& codec, size_t part, std::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrFormat("part %d (%s): %s", part + 1, DataTypeName(codec.parts()[part]), message));
}

// Checks types, sizes and forbidden nulls: everything that does not depend on the values.
absl::Status Check(const KeyCodec& codec, absl::Span<const ColumnSpan> columns,
                   const EncodedKeys& keys) {
  if (keys.kind() != codec.kind()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected a column of %s keys, found one of %s",
                        PhysicalTypeName(codec.kind()), PhysicalTypeName(keys.kind())));
  }
  if (columns.size() != codec.parts().size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected %d column%s, one for each part, found %d", codec.parts().size(),
                        codec.parts().size() == 1 ? "" : "s", columns.size()));
  }
  for (size_t part = 0; part < columns.size(); ++part) {
    const ColumnSpan& column = columns[part];
    const DataType type = codec.parts()[part];
    const DataType found = TypeOf(column);
    if (found != type && !(found == DataType::kText && type == DataType::kBytes)) {
      return InColumn(codec, part,
                      absl::StrFormat("expected a column of %s, found one of %s",
                                      DataTypeName(type), DataTypeName(found)));
    }
    if (column.size() != columns[0].size()) {
      return InColumn(codec, part,
                      absl::StrFormat("expected %d values, as part 1 has, found %d",
                                      columns[0].size(), column.size()));
    }
    if (column.validity == nullptr || codec.nulls() != NullPolicy::kSkip) continue;
    for (size_t i = 0; i < column.size(); ++i) {
      if (column.is_null(i)) {
        return InColumn(
            codec, part,
            absl::StrFormat("value %d: expected a value, found null, which nulls=skip keeps out",
                            i));
      }
    }
  }
  return absl::OkStatus();
}

// A single number without nulls: a loop that the compiler vectorizes.
template <typename T>
void AppendNumbers(absl::Span<const T> values, EncodedKeys* keys) {
  if constexpr (sizeof(T) == 8) {
    uint64_t* to = keys->ExtendU64(values.size());
    for (size_t i = 0; i < values.size(); ++i) to[i] = Ordered(values[i]);
  } else {
    uint32_t* to = keys->ExtendU32(values.size());
    for (size_t i = 0; i < values.size(); ++i) to[i] = Ordered(values[i]);
  }
}

// Moves packed[i] up by the part's width and puts its value below, for values [first, first +
// count).
void PackPart(const PartLayout& layout, const ColumnSpan& column, size_t first, size_t count,
              uint64_t* packed) {
  const size_t width = 8 * layout.width();  // 64 only if the key has only this part
  const auto put = [&](size_t i, uint64_t number) {
    packed[i] = (width == 64 ? 0 : packed[i] << width) | number;
  };
  std::visit(
      [&](const auto& values) {
        if constexpr (!std::is_same_v<typename std::decay_t<decltype(values)>::value_type,
                                      std::string_view>) {
          for (size_t i = 0; i < count; ++i) {
            put(i, PackedNumber(layout, Ordered(values[first + i])));
            if (column.is_null(first + i)) {
              // Nulls are rare: the value is removed again.
              const uint64_t mask = (uint64_t{1} << width) - 1;
              packed[i] = (packed[i] & ~mask) | PackedNull(layout);
            }
          }
        }
      },
      column.values);
}

void AppendPacked(const KeyCodec& codec, absl::Span<const ColumnSpan> columns, EncodedKeys* keys) {
  const size_t size = columns[0].size();
  uint32_t* u32 = codec.kind() == PhysicalType::kU32 ? keys->ExtendU32(size) : nullptr;
  uint64_t* u64 = codec.kind() == PhysicalType::kU64 ? keys->ExtendU64(size) : nullptr;
  uint64_t packed[kBlock];
  for (size_t first = 0; first < size; first += kBlock) {
    const size_t count = std::min(kBlock, size - first);
    std::fill_n(packed, count, 0);
    for (size_t part = 0; part < columns.size(); ++part) {
      PackPart(PartLayout::Of(codec, part), columns[part], first, count, packed);
    }
    if (u64 != nullptr) {
      std::copy_n(packed, count, u64 + first);
    } else {
      for (size_t i = 0; i < count; ++i) u32[first + i] = static_cast<uint32_t>(packed[i]);
    }
  }
}

// Appends the encoding of value i of a column.
absl::Status AppendValue(const PartLayout& layout, const ColumnSpan& column, size_t i,
                         std::string* key) {
  if (column.is_null(i)) return AppendPart(layout, std::monostate(), key);
  return std::visit(
      [&](const auto& values) -> absl::Status {
        if constexpr (std::is_same_v<typename std::decay_t<decltype(values)>::value_type,
                                     std::string_view>) {
          return AppendPart(layout, values[i], key);
        } else {
          AppendPartNumber(layout, Ordered(values[i]), key);
          return absl::OkStatus();
        }
      },
      column.values);
}

absl::Status AppendStrings(const KeyCodec& codec, absl::Span<const ColumnSpan> columns,
                           EncodedKeys* keys) {
  std::vector<PartLayout> layouts;
  for (size_t part = 0; part < columns.size(); ++part) {
    layouts.push_back(PartLayout::Of(codec, part));
  }
  EncodedKeys made(PhysicalType::kBytes);
  std::string key;
  for (size_t i = 0; i < columns[0].size(); ++i) {
    key.clear();
    for (size_t part = 0; part < columns.size(); ++part) {
      absl::Status status = AppendValue(layouts[part], columns[part], i, &key);
      if (status.ok() && key.size() > KeyCodec::kMaxKeyBytes) {
        status = absl::InvalidArgumentError(absl::StrFormat(
            "expected at most %d bytes in a key, found %d", KeyCodec::kMaxKeyBytes, key.size()));
      }
      if (!status.ok()) {
        return InColumn(codec, part, absl::StrFormat("value %d: %s", i, status.message()));
      }
    }
    made.AppendBytes(key);
  }
  if (!keys->empty()) {
    // Appends to a copy, so that either all keys are appended or none.
    EncodedKeys all = *keys;
    for (size_t i = 0; i < made.size(); ++i) all.AppendBytes(made.bytes(i));
    made = std::move(all);
  }
  *keys = std::move(made);
  return absl::OkStatus();
}

}  // namespace

ColumnSpan ColumnSpan::OfNumbers(DataType type, const void* data, size_t size) {
  const auto span = [&](auto number) {
    using T = decltype(number);
    return ColumnSpan{absl::MakeConstSpan(static_cast<const T*>(data), size)};
  };
  switch (type) {
    case DataType::kU8:
      return span(uint8_t());
    case DataType::kU16:
      return span(uint16_t());
    case DataType::kU32:
      return span(uint32_t());
    case DataType::kU64:
      return span(uint64_t());
    case DataType::kI8:
      return span(int8_t());
    case DataType::kI16:
      return span(int16_t());
    case DataType::kI32:
      return span(int32_t());
    case DataType::kI64:
      return span(int64_t());
    case DataType::kF32:
      return span(float());
    case DataType::kF64:
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  return span(double());
}

absl::Status KeyCodec::AppendColumns(absl::Span<const ColumnSpan> columns, EncodedKeys* keys) const
    try {
  RETURN_IF_ERROR(Check(*this, columns, *keys));
  if (kind_ == PhysicalType::kBytes) return AppendStrings(*this, columns, keys);
  if (columns.size() == 1 && nulls_ == NullPolicy::kSkip) {
    std::visit(
        [&](const auto& values) {
          if constexpr (!std::is_same_v<typename std::decay_t<decltype(values)>::value_type,
                                        std::string_view>) {
            AppendNumbers(values, keys);
          }
        },
        columns[0].values);
  } else {
    AppendPacked(*this, columns, keys);
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("encoding columns of keys");
}

}  // namespace cairn
