#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cairn/key_codec.h"

// The C++ types of columns' values, by DataType.
namespace cairn {

constexpr bool IsTextOrBytes(DataType type) {
  return type >= DataType::kText;
}

// The index of the type among those of ColumnSpan::values; text and bytes share one.
constexpr size_t ColumnTypeIndex(DataType type) {
  return std::min(static_cast<size_t>(type), static_cast<size_t>(DataType::kText));
}

template <typename T>
struct ColumnTypeTag {
  using type = T;
};

// Calls visitor(ColumnTypeTag<T>()) and returns its result. T is the C++ type of the values:
// std::string_view for text and bytes.
template <typename Visitor>
decltype(auto) VisitColumnType(DataType type, Visitor&& visitor) {
  switch (type) {
    case DataType::kU8:
      return visitor(ColumnTypeTag<uint8_t>());
    case DataType::kU16:
      return visitor(ColumnTypeTag<uint16_t>());
    case DataType::kU32:
      return visitor(ColumnTypeTag<uint32_t>());
    case DataType::kU64:
      return visitor(ColumnTypeTag<uint64_t>());
    case DataType::kI8:
      return visitor(ColumnTypeTag<int8_t>());
    case DataType::kI16:
      return visitor(ColumnTypeTag<int16_t>());
    case DataType::kI32:
      return visitor(ColumnTypeTag<int32_t>());
    case DataType::kI64:
      return visitor(ColumnTypeTag<int64_t>());
    case DataType::kF32:
      return visitor(ColumnTypeTag<float>());
    case DataType::kF64:
      return visitor(ColumnTypeTag<double>());
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  return visitor(ColumnTypeTag<std::string_view>());
}

// A number's bits in 64 bits: integers are sign-extended, floats zero-extended.
template <typename T>
constexpr uint64_t NumberToBits(T number) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(number);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(number);
  } else {
    return static_cast<uint64_t>(number);
  }
}

// The inverse of NumberToBits; ignores bits that T does not have.
template <typename T>
constexpr T NumberOf(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

// The type of a number in a DataValue.
template <typename T>
using DataValueNumber =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename T>
constexpr DataValue ToDataValue(T number) {
  return static_cast<DataValueNumber<T>>(number);
}

}  // namespace cairn
