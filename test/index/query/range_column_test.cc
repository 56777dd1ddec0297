// RangesOf: the physical ranges of logical queries contain the keys that the queries define.
#include "index/query/range_column.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "index/query/physical_key.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(range_column_test)
namespace {

using Parts = std::vector<DataValue>;

// Compares the first leading.size() parts of a key with `leading`: -1, 0 or 1.
int Compare(const Parts& key, const Parts& leading) {
  for (size_t i = 0; i < leading.size(); ++i) {
    if (key[i] < leading[i]) return -1;
    if (leading[i] < key[i]) return 1;
  }
  return 0;
}

template <typename Key>
bool Within(const Key& key, const RangeBatch& ranges) {
  const Key lower = ranges.lower.as<Key>()[0], upper = ranges.upper.as<Key>()[0];
  const Bound from = ranges.lower_bound_of(0), to = ranges.upper_bound_of(0);
  return (from == Bound::kOpen || lower < key || (from == Bound::kInclusive && lower == key)) &&
         (to == Bound::kOpen || key < upper || (to == Bound::kInclusive && key == upper));
}

// The keys of a domain that a query's ranges have, against those that satisfy `expected`.
void CheckKeys(const KeyCodec& codec, const std::vector<Parts>& domain, const KeyQuery& query,
               const std::function<bool(const Parts&)>& expected) {
  RangeColumn ranges;
  RequireOk(RangesOf(query, codec, &ranges));
  BOOST_REQUIRE_EQUAL(ranges.size(), 1u);
  for (const Parts& parts : domain) {
    EncodedKeys key(codec.kind());
    RequireOk(codec.Append(parts, &key));
    const bool found = WithPhysicalKey(codec.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      return Within<Key>(KeyAt<Key>(key, 0), ranges.Ranges());
    });
    BOOST_TEST(found == expected(parts));
  }
}

// All queries between two keys, or their leading parts.
void CheckRanges(const KeyCodec& codec, const std::vector<Parts>& domain, const Parts& lower,
                 const Parts& upper) {
  const LogicalKey from = LogicalKey::OfParts(lower), to = LogicalKey::OfParts(upper);
  CheckKeys(codec, domain, KeyQuery::Range(from, to),
            [&](const Parts& key) { return Compare(key, lower) >= 0 && Compare(key, upper) < 0; });
  CheckKeys(codec, domain, KeyQuery::Between(from, to),
            [&](const Parts& key) { return Compare(key, lower) >= 0 && Compare(key, upper) <= 0; });
  CheckKeys(codec, domain, KeyQuery::AtLeast(from),
            [&](const Parts& key) { return Compare(key, lower) >= 0; });
  CheckKeys(codec, domain, KeyQuery::GreaterThan(from),
            [&](const Parts& key) { return Compare(key, lower) > 0; });
  CheckKeys(codec, domain, KeyQuery::AtMost(to),
            [&](const Parts& key) { return Compare(key, upper) <= 0; });
  CheckKeys(codec, domain, KeyQuery::LessThan(to),
            [&](const Parts& key) { return Compare(key, upper) < 0; });
  CheckKeys(codec, domain, KeyQuery::Everything(), [](const Parts&) { return true; });
}

void CheckRefused(const KeyQuery& query, const KeyCodec& codec, const char* words) {
  RangeColumn ranges;
  const absl::Status status = RangesOf(query, codec, &ranges);
  BOOST_TEST(absl::IsInvalidArgument(status), status);
  BOOST_TEST(absl::StrContains(std::string(status.message()), words), status);
}

KeyCodec Codec(std::vector<DataType> types) {
  return RequireOk(KeyCodec::Create(types));
}

}  // namespace

BOOST_AUTO_TEST_CASE(ranges_have_their_ends_or_not) {
  const std::vector<DataValue> bytes = {uint64_t{0}, uint64_t{1}, uint64_t{254}, uint64_t{255}};
  const std::vector<DataValue> words = {std::string_view(""), std::string_view("PT"),
                                        std::string_view("PTX"), std::string_view("\xff\xff")};
  constexpr DataType kU8 = DataType::kU8, kText = DataType::kText;
  for (const std::vector<DataType>& types : std::vector<std::vector<DataType>>{
           {kU8}, {kU8, kU8, kU8, kU8}, {kText}, {kText, kU8}, {kU8, kText}}) {
    const KeyCodec codec = Codec(types);
    std::vector<Parts> domain = {{}};
    for (const DataType type : types) {
      const std::vector<DataValue>& values = type == kU8 ? bytes : words;
      std::vector<Parts> longer;
      for (const Parts& key : domain) {
        for (const DataValue& value : values) {
          longer.push_back(key);
          longer.back().push_back(value);
        }
      }
      domain = std::move(longer);
    }
    std::mt19937_64 random = TestRandom();
    for (int i = 0; i < 30; ++i) {
      Parts lower = domain[random() % domain.size()], upper = domain[random() % domain.size()];
      lower.resize(1 + random() % lower.size());
      upper.resize(1 + random() % upper.size());
      CheckRanges(codec, domain, lower, upper);
      if (lower.size() < codec.parts().size()) {
        CheckKeys(codec, domain, KeyQuery::Prefix(LogicalKey::OfParts(lower)),
                  [&](const Parts& key) { return Compare(key, lower) == 0; });
      }
      if (const auto* text = std::get_if<std::string_view>(&lower.back())) {
        const Parts before(lower.begin(), lower.end() - 1);
        CheckKeys(codec, domain, KeyQuery::BytePrefix(LogicalKey::OfParts(lower)),
                  [&, last = before.size()](const Parts& key) {
                    return Compare(key, before) == 0 &&
                           std::get<std::string_view>(key[last]).starts_with(*text);
                  });
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(prefixes_are_of_whole_parts_and_byte_prefixes_of_text) {
  const KeyCodec number = Codec({DataType::kU32});
  CheckKeys(number, {{uint64_t{17}}, {uint64_t{18}}, {uint64_t{180}}}, KeyQuery::Prefix(18),
            [](const Parts& key) { return std::get<uint64_t>(key[0]) == 18; });
  CheckRefused(KeyQuery::BytePrefix(18), number, "a prefix of text or bytes");
  const KeyCodec text = Codec({DataType::kText});
  CheckRefused(KeyQuery::Prefix("Lis"), text, "use BytePrefix");
  CheckRefused(KeyQuery::Prefix(LogicalKey({})), text, "found 0");
  CheckRefused(KeyQuery::AtMost(LogicalKey({})), text, "upper end: expected 1");
  CheckRefused(KeyQuery::GreaterThan({"a", "b"}), text, "lower end");
}

BOOST_AUTO_TEST_CASE(a_column_owns_keys_or_ranges_with_their_cursors) {
  RangeColumn column(PhysicalType::kU64);
  const std::vector<uint64_t> keys = {3, 1};
  column.AppendKeys(keys);
  BOOST_TEST(column.is_keys());
  BOOST_TEST(column.Keys().u64() == absl::MakeConstSpan(keys), boost::test_tools::per_element());
  BOOST_TEST((column.Ranges().upper_bound_of(1) == Bound::kInclusive));
  BOOST_TEST(column.Ranges().upper.u64()[1] == 1u);

  column.Clear(PhysicalType::kBytes);
  const std::vector<std::string_view> lower = {"a", "b"}, upper = {"c", "d"};
  column.AppendRanges(RangeBatch::HalfOpen(lower, upper));
  RangeBatch more = RangeBatch::Prefix(lower);
  const std::vector<std::string> after = {"x", ""};
  more.after = after;
  column.AppendRanges(more);
  column.AppendRanges(RangeBatch::Everything(PhysicalType::kBytes));
  const RangeBatch ranges = column.Ranges();
  BOOST_TEST(!column.is_keys());
  BOOST_REQUIRE_EQUAL(ranges.size(), 5u);
  BOOST_TEST(ranges.lower.bytes()[3] == "b");
  BOOST_TEST((ranges.upper_bound_of(1) == Bound::kExclusive));
  BOOST_TEST((ranges.upper_bound_of(2) == Bound::kPrefix));
  BOOST_TEST((ranges.lower_bound_of(4) == Bound::kOpen));
  const std::vector<std::string> all = {"", "", "x", "", ""};
  BOOST_TEST(ranges.after == absl::MakeConstSpan(all), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_range_up_to_a_prefix_without_a_lower_end_has_the_keys_before_it) {
  const std::string_view prefix[] = {"b"};
  RangeBatch range = RangeBatch::Prefix(prefix);
  const auto has = [&](std::string_view key) { return IsWithin<std::string_view>(key, range, 0); };
  BOOST_TEST((!has("a") && has("b") && has("bz") && !has("c")));
  range.lower_bound = Bound::kExclusive;
  BOOST_TEST((!has("a") && !has("b") && has("bz") && !has("c")));
  range.lower_bound = Bound::kOpen;
  BOOST_TEST((has("a") && has("b") && has("bz") && !has("c")));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
