#pragma once

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cairn/column.h"
#include "index/columns/column_type.h"
#include "index/keys/key_number.h"

namespace cairn {

using std::string_view_literals::operator""sv;

inline constexpr DataType kAllTypes[] = {DataType::kU8,  DataType::kU16,  DataType::kU32,
                                         DataType::kU64, DataType::kI8,   DataType::kI16,
                                         DataType::kI32, DataType::kI64,  DataType::kF32,
                                         DataType::kF64, DataType::kText, DataType::kBytes};

inline bool Mentions(const absl::Status& status, std::string_view what) {
  const bool found = std::string(status.message()).find(what) != std::string::npos;
  if (!found) BOOST_TEST_MESSAGE("'" << what << "' is not in: " << status.message());
  return found;
}

// A value that owns its text, as an oracle keeps it.
struct OwnedValue {
  DataValue number;  // or null, if there is no text
  bool is_text = false;
  std::string text;

  DataValue view() const { return is_text ? DataValue(std::string_view(text)) : number; }
  static OwnedValue Of(const DataValue& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) {
      return {std::monostate(), true, std::string(*text)};
    }
    return {value, false, {}};
  }
};

// Equal as columns keep values: floats bit for bit, but NaNs.
inline bool SameValue(const DataValue& a, const DataValue& b) {
  const auto* x = std::get_if<double>(&a);
  const auto* y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y) ||
         (std::isnan(*x) && std::isnan(*y));
}

// The value of a type that some bits make.
inline OwnedValue ValueOfBits(DataType type, uint64_t bits) {
  return VisitColumnType(type, [&](auto tag) -> OwnedValue {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      std::string text;
      for (; bits != 0; bits >>= 6) text.push_back("\0abcdefg"[bits % 8]);
      return {std::monostate(), true, text};
    } else {
      return {ToDataValue(NumberOf<T>(bits)), false, {}};
    }
  });
}

// A value: any bits, few bits, or one of the type's odd ones.
inline OwnedValue RandomValue(DataType type, int null_percent, std::mt19937_64& random) {
  if (static_cast<int>(random() % 100) < null_percent) return {};
  if (type == DataType::kF64 && random() % 4 == 0) {
    const double odd[] = {0.0,
                          -0.0,
                          std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN(),
                          0.1,
                          19.99,
                          5e-324};
    return {odd[random() % std::size(odd)], false, {}};
  }
  if (type == DataType::kF32 && random() % 4 == 0) {
    const float odd[] = {0.0F, -0.0F, std::numeric_limits<float>::infinity(), 0.1F, 1e-45F};
    return {static_cast<double>(odd[random() % std::size(odd)]), false, {}};
  }
  switch (random() % 4) {
    case 0:
      return ValueOfBits(type, random());
    case 1:
      return ValueOfBits(type, random() % 16);
    case 2:
      return ValueOfBits(type, ~(random() % 4));
    default:
      return ValueOfBits(type, random() >> random() % 64);
  }
}

inline std::vector<OwnedValue> RandomValues(DataType type, size_t size, int null_percent,
                                            std::mt19937_64& random) {
  std::vector<OwnedValue> values;
  for (size_t i = 0; i < size; ++i) values.push_back(RandomValue(type, null_percent, random));
  return values;
}

// Also called in threads, which Boost.Test must not see.
inline ColumnValues ToColumn(DataType type, const std::vector<OwnedValue>& values) {
  ColumnValues column(type);
  for (const OwnedValue& value : values) {
    if (!column.Append(value.view()).ok()) std::abort();
  }
  return column;
}

// Checks that a column has exactly these values; null slots must be 0 or "".
inline void CheckValues(const ColumnValues& column, const std::vector<OwnedValue>& expected) {
  BOOST_REQUIRE(column.size() == expected.size());
  size_t nulls = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const DataValue value = expected[i].view();
    const bool null = std::holds_alternative<std::monostate>(value);
    nulls += null ? 1 : 0;
    BOOST_REQUIRE(column.is_null(i) == null);
    BOOST_REQUIRE_MESSAGE(SameValue(column.value(i), value), DataTypeName(column.type())
                                                                 << ", value " << i << ": expected "
                                                                 << Described(value) << ", found "
                                                                 << Described(column.value(i)));
    if (!null) continue;
    const bool zero = VisitColumnType(column.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, std::string_view>) {
        return column.bytes(i).empty();
      } else {
        return NumberToBits(column.numbers<T>()[i]) == 0;
      }
    });
    BOOST_REQUIRE(zero);
  }
  BOOST_REQUIRE(column.null_count() == nulls);
  BOOST_REQUIRE((column.validity() == nullptr) == (nulls == 0));
}

}  // namespace cairn
