#include "cairn/column.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "test/index/columns/values.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(column_values_test)
namespace {

BOOST_AUTO_TEST_CASE(gives_back_what_was_appended_in_every_type) {
  auto random = TestRandom();
  for (DataType type : kAllTypes) {
    for (const int null_percent : {0, 20, 100}) {
      for (const size_t size : {0, 1, 2, 7, 8, 9, 63, 64, 65, 500}) {
        const std::vector<OwnedValue> expected = RandomValues(type, size, null_percent, random);
        ColumnValues column(type);
        for (const OwnedValue& value : expected) RequireOk(column.Append(value.view()));
        CheckValues(column, expected);
        // Whole columns, and pieces of them.
        ColumnValues copy(type);
        RequireOk(copy.AppendColumn(column.View()));
        CheckValues(copy, expected);
        ColumnValues pieces(type);
        for (size_t at = 0; at < size;) {
          const size_t count = std::min<size_t>(size - at, 1 + random() % 20);
          pieces.AppendFrom(column, at, count);
          at += count;
        }
        CheckValues(pieces, expected);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(truncates_and_clears_to_any_size) {
  auto random = TestRandom();
  for (DataType type : kAllTypes) {
    std::vector<OwnedValue> expected = RandomValues(type, 100, 10, random);
    ColumnValues column(type);
    for (int round = 0; round < 50; ++round) {
      for (const OwnedValue& value : RandomValues(type, random() % 30, 10, random)) {
        RequireOk(column.Append(value.view()));
        if (column.size() > expected.size()) {
          expected.push_back(value);
        } else {
          expected[column.size() - 1] = value;
        }
      }
      expected.resize(random() % (column.size() + 1));
      column.Truncate(expected.size());
      CheckValues(column, expected);
    }
    column.Clear();
    CheckValues(column, {});
    for (DataType next : kAllTypes) {
      column.Clear(next);
      const auto values = RandomValues(next, 20, 30, random);
      for (const OwnedValue& value : values) RequireOk(column.Append(value.view()));
      CheckValues(column, values);
    }
  }
}

// KeyCodec::Append defines which values fit.
BOOST_AUTO_TEST_CASE(refuses_what_a_key_codec_refuses) {
  const std::vector<DataValue> values = {uint64_t{0},
                                         uint64_t{255},
                                         uint64_t{256},
                                         uint64_t{65536},
                                         uint64_t{1} << 32,
                                         UINT64_MAX,
                                         int64_t{-1},
                                         int64_t{-128},
                                         int64_t{-129},
                                         INT64_MIN,
                                         0.0,
                                         -0.0,
                                         0.5,
                                         1e300,
                                         1e-300,
                                         std::numeric_limits<double>::infinity(),
                                         std::numeric_limits<double>::quiet_NaN(),
                                         "text"sv,
                                         ""sv};
  for (DataType type : kAllTypes) {
    const KeyCodec codec = RequireOk(KeyCodec::Create({type}));
    for (const DataValue& value : values) {
      ColumnValues column(type);
      column.AppendNull();
      EncodedKeys keys(codec.kind());
      const absl::Status expected = codec.Append({value}, &keys);
      const absl::Status status = column.Append(value);
      BOOST_TEST(status.ok() == expected.ok());
      BOOST_TEST(column.size() == (status.ok() ? 2u : 1u));
      if (status.ok()) continue;
      BOOST_TEST(absl::IsInvalidArgument(status));
      BOOST_TEST(Mentions(expected, std::string(status.message())));
    }
  }
  ColumnValues text(DataType::kText);
  const std::string longest(KeyCodec::kMaxKeyBytes, 'x');
  RequireOk(text.Append(longest));
  BOOST_TEST(Mentions(text.Append(longest + "x"), "at most 16777216 bytes in a value"));
  const std::string too_long = longest + "x";
  const std::vector<std::string_view> views = {"a", too_long};
  ColumnSpan column;
  column.values = absl::MakeConstSpan(views);
  BOOST_TEST(Mentions(text.AppendColumn(column), "value 1: expected at most"));
  BOOST_TEST(text.size() == 1u);
  column = ColumnSpan::OfNumbers(DataType::kU8, "ab", 2);
  BOOST_TEST(Mentions(text.AppendColumn(column), "expected a column of text"));
}

BOOST_AUTO_TEST_CASE(keeps_every_bit_of_floats) {
  ColumnValues column(DataType::kF64);
  const uint64_t bits[] = {
      0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 0x8000000000000000, 1,
      0x7FF0000000000000};
  for (const uint64_t b : bits) column.AppendNumber(std::bit_cast<double>(b));
  ColumnValues copy(DataType::kF64);
  RequireOk(copy.AppendColumn(column.View()));
  for (size_t i = 0; i < std::size(bits); ++i) {
    BOOST_TEST(std::bit_cast<uint64_t>(copy.numbers<double>()[i]) == bits[i]);
  }
}

BOOST_AUTO_TEST_CASE(its_layout_is_arrows) {
  ColumnValues text(DataType::kText);
  for (const DataValue& value : std::vector<DataValue>{"ab"sv, {}, ""sv, "c"sv}) {
    RequireOk(text.Append(value));
  }
  BOOST_TEST(text.strings().heap() == "abc");
  BOOST_TEST((text.strings().offsets() == std::vector<uint64_t>{0, 2, 2, 2, 3}));
  BOOST_TEST((text.validity()[0] & 0xF) == 0b1101);
  ColumnValues numbers(DataType::kI16);
  numbers.AppendNumber<int16_t>(-1);
  BOOST_TEST(numbers.validity() == nullptr);
  numbers.AppendNull(9);
  BOOST_TEST(numbers.null_count() == 9u);
  BOOST_TEST(numbers.numbers<int16_t>()[9] == 0);
  BOOST_TEST(numbers.data() == numbers.numbers<int16_t>().data());
  BOOST_TEST(numbers.validity()[0] == 1);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
