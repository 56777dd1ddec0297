// KeyCodec::AppendColumns, against Append key by key.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "cairn/key_codec.h"
#include "test/index/keys/key_values.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_columns_test, *StartsNoThread())
namespace {

// Columns that own their values: one per element of `types`, of `size` values.
struct Columns {
  template <typename T>
  static const T* Get(const DataValue& value) {
    return std::get_if<T>(&value);
  }

  template <typename T>
  absl::Span<const T> Add(std::deque<std::vector<T>>* store, const std::vector<DataValue>& values) {
    std::vector<T>& column = store->emplace_back();
    for (const DataValue& value : values) {
      column.push_back(std::visit(
          [](const auto& v) -> T {
            using V = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<V, std::monostate>) {
              return T{};
            } else if constexpr (std::is_same_v<V, std::string_view> !=
                                 std::is_same_v<T, std::string_view>) {
              return T{};
            } else {
              return static_cast<T>(v);
            }
          },
          value));
    }
    return column;
  }

  ColumnSpan Add(DataType type, const std::vector<DataValue>& values) {
    switch (type) {
      case DataType::kU8:
        return {Add(&u8, values)};
      case DataType::kU16:
        return {Add(&u16, values)};
      case DataType::kU32:
        return {Add(&u32, values)};
      case DataType::kU64:
        return {Add(&u64, values)};
      case DataType::kI8:
        return {Add(&i8, values)};
      case DataType::kI16:
        return {Add(&i16, values)};
      case DataType::kI32:
        return {Add(&i32, values)};
      case DataType::kI64:
        return {Add(&i64, values)};
      case DataType::kF32:
        return {Add(&f32, values)};
      case DataType::kF64:
        return {Add(&f64, values)};
      case DataType::kText:
      case DataType::kBytes:
        break;
    }
    return {Add(&text, values)};
  }

  std::deque<std::vector<uint8_t>> u8;
  std::deque<std::vector<uint16_t>> u16;
  std::deque<std::vector<uint32_t>> u32;
  std::deque<std::vector<uint64_t>> u64;
  std::deque<std::vector<int8_t>> i8;
  std::deque<std::vector<int16_t>> i16;
  std::deque<std::vector<int32_t>> i32;
  std::deque<std::vector<int64_t>> i64;
  std::deque<std::vector<float>> f32;
  std::deque<std::vector<double>> f64;
  std::deque<std::vector<std::string_view>> text;
  std::deque<std::vector<uint8_t>> validity;
};

// Random values of each part, some of them null if allowed, as columns and one by one.
void CheckRandom(const std::vector<DataType>& parts, NullPolicy nulls, size_t size,
                 std::mt19937_64& random) {
  const KeyCodec codec = Codec(parts, nulls);
  Columns owner;
  std::vector<ColumnSpan> columns;
  std::vector<std::vector<DataValue>> values(parts.size());
  for (size_t part = 0; part < parts.size(); ++part) {
    const std::vector<DataValue> corners = Corners(parts[part]);
    for (size_t i = 0; i < size; ++i) {
      const bool null = nulls != NullPolicy::kSkip && random() % 4 == 0;
      values[part].push_back(null                ? DataValue()
                             : random() % 2 == 0 ? corners[random() % corners.size()]
                                                 : RandomValue(parts[part], random));
    }
    ColumnSpan column = owner.Add(parts[part], values[part]);
    column.first_bit = random() % 20;
    std::vector<uint8_t>& bits = owner.validity.emplace_back((column.first_bit + size + 7) / 8 + 1);
    for (size_t i = 0; i < size; ++i) {
      if (!IsNull(values[part][i])) {
        bits[(column.first_bit + i) / 8] |= 1 << ((column.first_bit + i) % 8);
      }
    }
    if (nulls != NullPolicy::kSkip || random() % 2 == 0) column.validity = bits.data();
    columns.push_back(column);
  }
  EncodedKeys expected(codec.kind());
  EncodedKeys found(codec.kind());
  std::vector<DataValue> tuple(parts.size());
  for (const int times : {1, 2}) {  // into empty keys, and after other keys
    for (size_t i = 0; i < size; ++i) {
      for (size_t part = 0; part < parts.size(); ++part) tuple[part] = values[part][i];
      RequireOk(codec.Append(tuple, &expected));
    }
    RequireOk(codec.AppendColumns(columns, &found));
    BOOST_REQUIRE(found.size() == times * size);
    for (size_t i = 0; i < found.size(); ++i) {
      BOOST_REQUIRE_MESSAGE(Compare(expected, i, found, i) == 0, "key " << i);
    }
  }
}

BOOST_AUTO_TEST_CASE(columns_are_encoded_as_their_values_one_by_one) {
  std::mt19937_64 random = TestRandom();
  for (const NullPolicy nulls : kAllNulls) {
    for (const DataType type : kAllTypes) {
      for (const size_t size : {0, 1, 7, 3000}) CheckRandom({type}, nulls, size, random);
    }
    for (int round = 0; round < 100; ++round) {
      std::vector<DataType> parts;
      const size_t count = 1 + random() % 4;
      while (parts.size() < count) parts.push_back(kAllTypes[random() % std::size(kAllTypes)]);
      CheckRandom(parts, nulls, random() % 2100, random);
    }
    CheckRandom({DataType::kU8, DataType::kI8, DataType::kU16}, nulls, 2100, random);
    CheckRandom({DataType::kF32, DataType::kI16}, nulls, 2100, random);
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_column_of_the_part_and_appends_nothing) {
  const KeyCodec codec = Codec({DataType::kU32, DataType::kText});
  const std::vector<uint32_t> u32 = {1, 2, 3};
  const std::vector<int32_t> i32 = {1, 2, 3};
  const std::vector<std::string_view> text = {"a", "b", "c"};
  EncodedKeys keys(PhysicalType::kBytes);
  const auto append = [&](const std::vector<ColumnSpan>& columns) {
    const absl::Status status = codec.AppendColumns(columns, &keys);
    BOOST_CHECK(absl::IsInvalidArgument(status));
    BOOST_CHECK(keys.empty());
    return status;
  };
  const ColumnSpan numbers{absl::MakeConstSpan(u32)};
  const ColumnSpan texts{absl::MakeConstSpan(text)};
  BOOST_CHECK(Mentions(append({numbers}), "expected 2 columns, one for each part, found 1"));
  BOOST_CHECK(Mentions(append({ColumnSpan{absl::MakeConstSpan(i32)}, texts}),
                       "part 1 (u32): expected a column of u32, found one of i32"));
  BOOST_CHECK(Mentions(append({numbers, numbers}), "part 2 (text): expected a column of text"));
  BOOST_CHECK(Mentions(append({numbers, ColumnSpan{absl::MakeConstSpan(text).subspan(1)}}),
                       "expected 3 values, as part 1 has, found 2"));
  const uint8_t bits = 0b1011;
  BOOST_CHECK(Mentions(append({numbers, ColumnSpan{absl::MakeConstSpan(text), &bits, 1}}),
                       "part 2 (text): value 1: expected a value, found null"));
  const std::string long_text(KeyCodec::kMaxKeyBytes - 2, 'x');
  const std::vector<std::string_view> long_texts = {"a", long_text, "c"};
  BOOST_CHECK(Mentions(append({numbers, ColumnSpan{absl::MakeConstSpan(long_texts)}}),
                       "part 2 (text): value 1: expected at most"));
  EncodedKeys other(PhysicalType::kU32);
  BOOST_CHECK(Mentions(codec.AppendColumns({numbers, texts}, &other), "found one of u32"));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
