#include "index/aggregates/range_float_sums.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "test/index/aggregates/entries.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(range_float_sums_test)
namespace {

// The sum of a range in long double, and of the values' magnitudes, which bounds the error.
struct Exact {
  long double sum = 0, magnitude = 0;
  uint64_t count = 0;

  Exact(const std::vector<OwnedValue>& values, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const DataValue value = values[i].view();
      const auto* number = std::get_if<double>(&value);
      if (number == nullptr) continue;
      sum += *number;
      magnitude += std::abs(*number);
      ++count;
    }
  }
};

void CheckSums(const Entries& entries, std::mt19937_64& random) {
  const auto sums = RequireOk(RangeFloatSums::Build(entries.table, 0, entries.row_ids, 2));
  const Ranges ranges = SomeRanges(entries.values.size(), random);
  std::vector<FloatSum> found(ranges.size());
  sums->Sum(ranges.begin, ranges.end, absl::MakeSpan(found));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Exact exact(entries.values, ranges.begin[i], ranges.end[i]);
    BOOST_REQUIRE(found[i].count == exact.count);
    const auto error = std::abs(static_cast<long double>(found[i].sum) - exact.sum);
    BOOST_REQUIRE(error <= exact.magnitude * 0x1p-46L);
    const FloatSum again = sums->Sum(ranges.begin[i], ranges.end[i]);
    BOOST_REQUIRE(std::bit_cast<uint64_t>(again.sum) == std::bit_cast<uint64_t>(found[i].sum));
    BOOST_REQUIRE(again.count == found[i].count);
  }
  const auto of_values = RequireOk(RangeFloatSums::Build(ValuesOf(entries), 2));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const FloatSum same = of_values->Sum(ranges.begin[i], ranges.end[i]);
    BOOST_REQUIRE(std::bit_cast<uint64_t>(same.sum) == std::bit_cast<uint64_t>(found[i].sum));
    BOOST_REQUIRE(same.count == found[i].count);
  }
}

std::vector<OwnedValue> Floats(size_t size, int null_percent, std::mt19937_64& random) {
  std::vector<OwnedValue> values;
  for (size_t i = 0; i < size; ++i) {
    const double number =
        std::ldexp(static_cast<double>(random() % 2000) - 1000, static_cast<int>(random() % 20));
    const bool null = static_cast<int>(random() % 100) < null_percent;
    values.push_back(null ? OwnedValue{} : OwnedValue{number, false, {}});
  }
  return values;
}

BOOST_AUTO_TEST_CASE(sums_ranges_of_every_size) {
  auto random = TestRandom();
  for (const DataType type : {DataType::kF32, DataType::kF64}) {
    for (const size_t size : {0, 1, 2, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097}) {
      for (const int null_percent : {0, 20, 100}) {
        CheckSums(Entries(type, Floats(size, null_percent, random), size, random), random);
      }
    }
    const size_t many = FewerSanitized(150'000, 3, 10);
    CheckSums(Entries(type, Floats(3000, 5, random), many, random), random);
  }
}

// Values outside a range do not affect its sum, even NaN and infinities.
BOOST_AUTO_TEST_CASE(what_is_outside_of_a_range_does_not_matter) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double odd[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 1e308};
  auto random = TestRandom();
  std::vector<OwnedValue> rows;
  for (const double number : odd) rows.push_back({number, false, {}});
  rows.push_back({1.0, false, {}});
  Entries entries(DataType::kF64, rows, 5000, random);
  for (size_t i = 0; i < 5000; ++i) {
    entries.row_ids[i] = i >= 1000 && i < 4000 ? 4 : static_cast<RowId>(random() % 4);
  }
  const auto sums = RequireOk(RangeFloatSums::Build(entries.table, 0, entries.row_ids, 1));
  for (int round = 0; round < 500; ++round) {
    const auto begin = static_cast<Position>(1000 + random() % 3000);
    const auto end = static_cast<Position>(begin + random() % (4001 - begin));
    BOOST_REQUIRE(sums->Sum(begin, end).sum == end - begin);
  }
  BOOST_TEST(!std::isfinite(sums->Sum(0, 5000).sum));
  // Inside, it is as IEEE 754 has it.
  entries.row_ids.assign(100, 4);
  entries.row_ids[50] = 1;
  const auto one = RequireOk(RangeFloatSums::Build(entries.table, 0, entries.row_ids, 1));
  BOOST_TEST(one->Sum(0, 100).sum == kInfinity);
  entries.row_ids[70] = 2;
  const auto both = RequireOk(RangeFloatSums::Build(entries.table, 0, entries.row_ids, 1));
  BOOST_TEST(std::isnan(both->Sum(0, 100).sum));
  BOOST_TEST(both->Sum(60, 100).sum == -kInfinity);
  BOOST_TEST(both->Sum(71, 100).sum == 29);
}

BOOST_AUTO_TEST_CASE(a_sum_of_zeros_is_positive) {
  auto random = TestRandom();
  const Entries entries(DataType::kF64, {{-0.0, false, {}}}, 100, random);
  const auto sums = RequireOk(RangeFloatSums::Build(entries.table, 0, entries.row_ids, 1));
  BOOST_TEST(std::bit_cast<uint64_t>(sums->Sum(0, 100).sum) == 0u);
  BOOST_TEST(Mentions(RangeFloatSums::Build(entries.table, 1, entries.row_ids, 1).status(),
                      "there is no column 1"));
  BOOST_TEST(absl::IsOutOfRange(RangeFloatSums::Build(entries.table, 0, {1}, 1).status()));
  const Entries numbers(DataType::kU8, RandomValues(DataType::kU8, 10, 0, random), 10, random);
  BOOST_TEST(Mentions(RangeFloatSums::Build(numbers.table, 0, numbers.row_ids, 1).status(),
                      "column 'column' is of u8, expected floats"));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
