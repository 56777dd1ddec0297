#include "index/aggregates/range_sums.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <vector>

#include "test/index/aggregates/entries.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(range_sums_test)
namespace {

constexpr DataType kIntegers[] = {DataType::kU8, DataType::kU16, DataType::kU32, DataType::kU64,
                                  DataType::kI8, DataType::kI16, DataType::kI32, DataType::kI64};

// Prefix sums in 128 bits.
struct Oracle {
  std::vector<IntegerSum> before = {{}};

  explicit Oracle(const std::vector<OwnedValue>& values) {
    for (const OwnedValue& value : values) {
      IntegerSum next = before.back();
      const DataValue view = value.view();
      if (const auto* number = std::get_if<uint64_t>(&view)) next.sum += absl::int128(*number);
      if (const auto* number = std::get_if<int64_t>(&view)) next.sum += absl::int128(*number);
      next.count += std::holds_alternative<std::monostate>(view) ? 0 : 1;
      before.push_back(next);
    }
  }
  IntegerSum Sum(size_t begin, size_t end) const {
    if (begin >= end) return {};
    return {before[end].sum - before[begin].sum, before[end].count - before[begin].count};
  }
};

void CheckSums(const Entries& entries, std::mt19937_64& random) {
  const auto sums = RequireOk(RangeSums::Build(entries.table, 0, entries.row_ids, 2));
  const Oracle oracle(entries.values);
  const Ranges ranges = SomeRanges(entries.values.size(), random);
  std::vector<IntegerSum> found(ranges.size());
  sums->Sum(ranges.begin, ranges.end, absl::MakeSpan(found));
  for (size_t i = 0; i < ranges.size(); ++i) {
    BOOST_REQUIRE((found[i] == oracle.Sum(ranges.begin[i], ranges.end[i])));
    BOOST_REQUIRE((found[i] == sums->Sum(ranges.begin[i], ranges.end[i])));
  }

  // The same for values that are already in order, and for counts only.
  const ColumnValues values = ValuesOf(entries);
  const auto of_values = RequireOk(RangeSums::Build(values, 2));
  const auto counts = RequireOk(RangeSums::BuildCounts(entries.table, 0, entries.row_ids, 2));
  const auto counts_of_values = RequireOk(RangeSums::BuildCounts(values, 2));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const IntegerSum count = {0, found[i].count};
    BOOST_REQUIRE((found[i] == of_values->Sum(ranges.begin[i], ranges.end[i])));
    BOOST_REQUIRE((count == counts->Sum(ranges.begin[i], ranges.end[i])));
    BOOST_REQUIRE((count == counts_of_values->Sum(ranges.begin[i], ranges.end[i])));
  }
}

BOOST_AUTO_TEST_CASE(sums_ranges_of_every_type_and_size) {
  auto random = TestRandom();
  for (DataType type : kIntegers) {
    for (const size_t size : {0, 1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 3000}) {
      for (const int null_percent : {0, 20, 100}) {
        CheckSums(Entries(type, RandomValues(type, size, null_percent, random), size, random),
                  random);
      }
    }
  }
  const size_t many = FewerSanitized(200'000, 3, 10);
  CheckSums(Entries(DataType::kI64, RandomValues(DataType::kI64, 3000, 10, random), many, random),
            random);
}

// Values of every width that is kept, at both ends of the type.
BOOST_AUTO_TEST_CASE(sums_values_of_every_width_without_overflow) {
  auto random = TestRandom();
  for (const uint64_t range :
       {uint64_t{0}, uint64_t{1}, uint64_t{255}, uint64_t{256}, uint64_t{65535}, uint64_t{65536},
        uint64_t{UINT32_MAX}, uint64_t{UINT32_MAX} + 1, UINT64_MAX}) {
    for (const bool nulls : {false, true}) {
      for (const bool upper : {false, true}) {
        std::vector<OwnedValue> unsigned_values, signed_values;
        for (size_t i = 0; i < 1500; ++i) {
          const uint64_t bits = i == 0 || range == 0 ? 0 : i % 3 == 0 ? range : random() % range;
          const uint64_t number = upper ? UINT64_MAX - bits : bits;
          const auto flipped = static_cast<int64_t>(number ^ uint64_t{1} << 63);
          const bool null = nulls && random() % 3 == 0;
          unsigned_values.push_back(null ? OwnedValue{} : OwnedValue{number, false, {}});
          signed_values.push_back(null ? OwnedValue{} : OwnedValue{flipped, false, {}});
        }
        CheckSums(Entries(DataType::kU64, unsigned_values, 2000, random), random);
        CheckSums(Entries(DataType::kI64, signed_values, 2000, random), random);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_as_much_memory_as_it_says) {
  auto random = TestRandom();
  const auto bytes_an_entry = [&](uint64_t range, int null_percent) {
    std::vector<OwnedValue> values;
    for (size_t i = 0; i < 5000; ++i) {
      const bool null = static_cast<int>(random() % 100) < null_percent;
      values.push_back(null ? OwnedValue{}
                            : OwnedValue{uint64_t{random() % (range + 1)}, false, {}});
    }
    const Entries entries(DataType::kU64, values, 64'000, random);
    const auto sums = RequireOk(RangeSums::Build(entries.table, 0, entries.row_ids, 2));
    return static_cast<double>(sums->memory_bytes()) / 64'000;
  };
  BOOST_TEST(bytes_an_entry(0, 0) == 0);
  BOOST_TEST(bytes_an_entry(200, 0) < 1.26);
  BOOST_TEST(bytes_an_entry(200, 10) < 1.39);
  BOOST_TEST(bytes_an_entry(60'000, 0) < 2.51);
  BOOST_TEST(bytes_an_entry(1'000'000'000, 0) < 5.01);
  BOOST_TEST(bytes_an_entry(uint64_t{1} << 62, 10) < 11.01);
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong_with_a_column_or_a_row) {
  auto random = TestRandom();
  const Entries text(DataType::kText, RandomValues(DataType::kText, 10, 0, random), 10, random);
  BOOST_TEST(Mentions(RangeSums::Build(text.table, 0, text.row_ids, 1).status(),
                      "column 'column' is of text, expected integers"));
  BOOST_TEST(
      Mentions(RangeSums::Build(text.table, 1, text.row_ids, 1).status(), "there is no column 1"));
  const Entries numbers(DataType::kU8, RandomValues(DataType::kU8, 10, 0, random), 10, random);
  const absl::Status status = RangeSums::Build(numbers.table, 0, {3, 10}, 1).status();
  BOOST_TEST(absl::IsOutOfRange(status));
  BOOST_TEST(Mentions(status, "there is no row 10"));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
