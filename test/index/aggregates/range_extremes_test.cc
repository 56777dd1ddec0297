#include "index/aggregates/range_extremes.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "test/index/aggregates/entries.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(range_extremes_test)
namespace {

// The order of values by definition: floats by total order, NaN last.
bool Less(const DataValue& a, const DataValue& b) {
  if (const auto* x = std::get_if<double>(&a)) {
    const double y = std::get<double>(b);
    if (std::isnan(*x) || std::isnan(y)) return !std::isnan(*x) && std::isnan(y);
    return *x < y || (*x == y && std::signbit(*x) && !std::signbit(y));
  }
  return a < b;
}

Position ExtremeOf(const std::vector<OwnedValue>& values, Extreme extreme, size_t begin,
                   size_t end) {
  Position best = kNoPosition;
  for (size_t i = begin; i < end; ++i) {
    const DataValue value = values[i].view();
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (best != kNoPosition) {
      const DataValue other = values[best].view();
      if (!(extreme == Extreme::kMin ? Less(value, other) : Less(other, value))) continue;
    }
    best = static_cast<Position>(i);
  }
  return best;
}

void CheckExtremes(const Entries& entries, std::mt19937_64& random) {
  const auto extremes = RequireOk(RangeExtremes::Build(entries.table, 0, entries.row_ids, 2));
  const Ranges ranges = SomeRanges(entries.values.size(), random);
  std::vector<Position> found(ranges.size());
  for (const Extreme extreme : {Extreme::kMin, Extreme::kGreatest}) {
    extremes->Find(extreme, ranges.begin, ranges.end, absl::MakeSpan(found));
    for (size_t i = 0; i < ranges.size(); ++i) {
      const Position expected = ExtremeOf(entries.values, extreme, ranges.begin[i], ranges.end[i]);
      BOOST_REQUIRE_MESSAGE(found[i] == expected,
                            "positions " << ranges.begin[i] << " to " << ranges.end[i]
                                         << ": expected " << expected << ", found " << found[i]);
      BOOST_REQUIRE(extremes->Find(extreme, ranges.begin[i], ranges.end[i]) == expected);
    }
  }

  // The same for values that are already in order; codes must have the values' order.
  const auto of_values = RequireOk(RangeExtremes::Build(ValuesOf(entries), 2));
  std::vector<Position> again(ranges.size());
  of_values->Find(Extreme::kGreatest, ranges.begin, ranges.end, absl::MakeSpan(again));
  BOOST_REQUIRE((again == found));
  Position last = kNoPosition;
  for (size_t i = 0; i < entries.values.size() && i < 500; ++i) {
    if (std::holds_alternative<std::monostate>(entries.values[i].view())) continue;
    const auto at = static_cast<Position>(i);
    if (last != kNoPosition) {
      BOOST_REQUIRE((extremes->Code(last) < extremes->Code(at)) ==
                    Less(entries.values[last].view(), entries.values[at].view()));
    }
    last = at;
  }
}

BOOST_AUTO_TEST_CASE(finds_extremes_of_every_type_and_size) {
  auto random = TestRandom();
  for (DataType type : kAllTypes) {
    for (const size_t size : {0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 2100}) {
      for (const int null_percent : {0, 20, 100}) {
        CheckExtremes(Entries(type, RandomValues(type, size, null_percent, random), size, random),
                      random);
      }
    }
  }
  const size_t many = FewerSanitized(150'000, 3, 10);
  for (DataType type : {DataType::kU8, DataType::kI32, DataType::kF64, DataType::kText}) {
    CheckExtremes(Entries(type, RandomValues(type, 3000, 5, random), many, random), random);
  }
}

// Ranges of values at which one more byte is taken, with and without room for null.
BOOST_AUTO_TEST_CASE(finds_extremes_of_values_of_every_width) {
  auto random = TestRandom();
  for (const uint64_t range :
       {uint64_t{0}, uint64_t{254}, uint64_t{255}, uint64_t{256}, uint64_t{65534}, uint64_t{65535},
        uint64_t{UINT32_MAX} - 1, uint64_t{UINT32_MAX}, UINT64_MAX - 1, UINT64_MAX}) {
    for (const bool nulls : {false, true}) {
      std::vector<OwnedValue> values;
      for (size_t i = 0; i < 1500; ++i) {
        const uint64_t number = i % 100 == 0 ? 0 : i % 100 == 1 ? range : random() % (range | 1);
        const bool null = nulls && random() % 3 == 0;
        values.push_back(null ? OwnedValue{} : OwnedValue{std::min(number, range), false, {}});
      }
      CheckExtremes(Entries(DataType::kU64, values, 3000, random), random);
    }
  }
}

// With few distinct values, most extremes are ties, at each place of the structure.
BOOST_AUTO_TEST_CASE(of_equal_values_it_is_the_first) {
  auto random = TestRandom();
  for (const int distinct : {1, 2, 3}) {
    for (const size_t size : {200, 5000, 40'000}) {
      std::vector<OwnedValue> rows;
      for (int i = 0; i < distinct; ++i) {
        rows.push_back({std::monostate(), true, std::string(static_cast<size_t>(i), 'a')});
      }
      CheckExtremes(Entries(DataType::kText, rows, size, random), random);
    }
  }
  std::vector<OwnedValue> ascending;
  for (uint64_t i = 0; i < 3000; ++i) ascending.push_back({i, false, {}});
  Entries entries(DataType::kU32, ascending, 3000, random);
  for (const bool reversed : {false, true}) {
    for (size_t i = 0; i < 3000; ++i) {
      entries.row_ids[i] = static_cast<RowId>(reversed ? 2999 - i : i);
      entries.values[i] = ascending[entries.row_ids[i]];
    }
    CheckExtremes(entries, random);
  }
}

BOOST_AUTO_TEST_CASE(text_with_common_prefixes_and_zero_bytes_is_ordered_as_bytes) {
  auto random = TestRandom();
  std::vector<OwnedValue> values;
  for (size_t i = 0; i < 700; ++i) {
    std::string text(300, 'p');
    text += std::string(random() % 4, '\0');
    text += static_cast<char>(random());
    values.push_back({std::monostate(), true, text});
  }
  values.push_back({std::monostate(), true, ""});
  CheckExtremes(Entries(DataType::kBytes, values, 2000, random), random);
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong_with_a_column_or_a_row) {
  auto random = TestRandom();
  for (const DataType type : {DataType::kU8, DataType::kText}) {
    const Entries entries(type, RandomValues(type, 10, 0, random), 10, random);
    BOOST_TEST(Mentions(RangeExtremes::Build(entries.table, 1, entries.row_ids, 1).status(),
                        "there is no column 1"));
    const absl::Status status = RangeExtremes::Build(entries.table, 0, {3, kNoRow}, 1).status();
    BOOST_TEST(absl::IsOutOfRange(status));
    BOOST_TEST(Mentions(status, "there is no row 4294967295, expected one of 10"));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
