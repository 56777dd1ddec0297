#include "index/columns/tuple.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_format.h"
#include "index/columns/column_type.h"
#include "index/keys/key_number.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

size_t NullBytes(size_t columns) {
  return (columns + 7) / 8;
}

// Takes `size` bytes from the front of *bytes; false if there are fewer.
bool Take(size_t size, std::string_view* bytes, std::string_view* taken) {
  if (bytes->size() < size) return false;
  *taken = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

// Returns a number from its little-endian bytes.
uint64_t LoadLittleEndian(std::string_view bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

DataValue NumberValue(DataType type, uint64_t bits) {
  return VisitColumnType(type, [&](auto tag) -> DataValue {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      return std::monostate();
    } else {
      return ToDataValue(NumberOf<T>(bits));
    }
  });
}

absl::Status AppendValue(DataType type, const DataValue& value, std::string* tuple) {
  if (const size_t width = FixedWidth(type); width != 0) {
    uint64_t bits = 0;
    RETURN_IF_ERROR(NumberBits(value, type, &bits));
    tuple->append(reinterpret_cast<const char*>(&bits), width);
    return absl::OkStatus();
  }
  const auto* const text = std::get_if<std::string_view>(&value);
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected %s, found %s", DataTypeName(type), Described(value)));
  }
  if (text->size() > KeyCodec::kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrFormat("expected at most %d bytes, found %d",
                                                      KeyCodec::kMaxKeyBytes, text->size()));
  }
  const auto size = static_cast<uint32_t>(text->size());
  tuple->append(reinterpret_cast<const char*>(&size), sizeof size);
  tuple->append(*text);
  return absl::OkStatus();
}

}  // namespace

TupleWriter::TupleWriter(absl::Span<const DataType> types, std::string* tuple)
    : types_(types), tuple_(tuple), begin_(tuple->size()) {
  tuple->append(NullBytes(types.size()), '\0');
}

absl::Status TupleWriter::Add(const DataValue& value) {
  const size_t i = next_++;
  if (!std::holds_alternative<std::monostate>(value)) return AppendValue(types_[i], value, tuple_);
  char& nulls = (*tuple_)[begin_ + i / 8];
  nulls = static_cast<char>(nulls | 1 << (i % 8));
  return absl::OkStatus();
}

bool ReadTuple(absl::Span<const DataType> types, std::string_view tuple,
               absl::Span<DataValue> values) {
  std::string_view nulls;
  if (!Take(NullBytes(types.size()), &tuple, &nulls)) return false;
  for (size_t i = 0; i < types.size(); ++i) {
    if ((nulls[i / 8] >> (i % 8) & 1) != 0) {
      values[i] = std::monostate();
      continue;
    }
    std::string_view bytes;
    if (const size_t width = FixedWidth(types[i]); width != 0) {
      if (!Take(width, &tuple, &bytes)) return false;
      values[i] = NumberValue(types[i], LoadLittleEndian(bytes));
    } else {
      if (!Take(sizeof(uint32_t), &tuple, &bytes) ||
          !Take(LoadLittleEndian(bytes), &tuple, &bytes)) {
        return false;
      }
      values[i] = bytes;
    }
  }
  return tuple.empty();
}

}  // namespace cairn
