// Indexes over columns of random types, slices and nulls, queried through the C API, compared with
// a map of the keys that the codec encodes one by one.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/c.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "test/engine/c/c_handles.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(column_index_test)
namespace {

constexpr DataType kTypes[] = {DataType::kU8,  DataType::kU16, DataType::kU32, DataType::kU64,
                               DataType::kI8,  DataType::kI16, DataType::kI32, DataType::kI64,
                               DataType::kF32, DataType::kF64, DataType::kText};

// Creates keys of `parts`, with few enough values that they repeat, and with nulls if allowed.
class RandomKeys {
 public:
  RandomKeys(std::vector<DataType> parts, bool nulls, uint64_t salt)
      : parts_(std::move(parts)), nulls_(nulls), random_(TestRandom(salt)) {
    static const char* const kText[] = {"u", "U", "z", "Z", "vu", "vz", "w:5"};
    for (const DataType type : parts_) {
      formats_.push_back(type == DataType::kText ? kText[random_() % 7] : NumberFormat(type));
    }
  }

  // `size` keys, one column per part; rows[i] is key i.
  struct Keys {
    std::vector<std::vector<DataValue>> rows;
    std::unique_ptr<TestArrow> arrow;
  };
  Keys Make(size_t size) {
    std::vector<std::vector<DataValue>> columns(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      for (size_t i = 0; i < size; ++i) columns[p].push_back(Value(p));
    }
    Keys keys;
    for (size_t i = 0; i < size; ++i) {
      keys.rows.emplace_back();
      for (const auto& column : columns) keys.rows.back().push_back(column[i]);
    }
    if (parts_.size() == 1) {
      keys.arrow = std::make_unique<TestArrow>(formats_[0], columns[0], random_() % 11);
      return keys;
    }
    // Elements before the struct's first, and children that are slices themselves.
    const size_t skipped = random_() % 4;
    std::vector<std::unique_ptr<TestArrow>> children;
    for (size_t p = 0; p < parts_.size(); ++p) {
      std::vector<DataValue> values;
      for (size_t i = 0; i < skipped; ++i) values.push_back(Value(p));
      values.insert(values.end(), columns[p].begin(), columns[p].end());
      children.push_back(std::make_unique<TestArrow>(formats_[p], values, random_() % 5));
    }
    keys.arrow = std::make_unique<TestArrow>(std::move(children), size, skipped);
    return keys;
  }

 private:
  static const char* NumberFormat(DataType type) {
    static const char* const kFormats[] = {"C", "S", "I", "L", "c", "s", "i", "l", "f", "g"};
    return kFormats[static_cast<size_t>(type)];
  }

  DataValue Value(size_t part) {
    if (nulls_ && random_() % 7 == 0) return {};
    const uint64_t small = random_() % 12;
    const bool edge = random_() % 10 == 0;
    const int64_t near_zero = static_cast<int64_t>(small) - 6;
    switch (parts_[part]) {
      case DataType::kU8:
        return edge ? uint64_t{UINT8_MAX} : small;
      case DataType::kU16:
        return edge ? uint64_t{UINT16_MAX} : small;
      case DataType::kU32:
        return edge ? uint64_t{UINT32_MAX} : small;
      case DataType::kU64:
        return edge ? UINT64_MAX : small;
      case DataType::kI8:
        return edge ? int64_t{INT8_MIN} : near_zero;
      case DataType::kI16:
        return edge ? int64_t{INT16_MIN} : near_zero;
      case DataType::kI32:
        return edge ? int64_t{INT32_MIN} : near_zero;
      case DataType::kI64:
        return edge ? INT64_MIN : near_zero;
      case DataType::kF32:
      case DataType::kF64:
        if (edge) return small % 3 == 0 ? std::nan("") : small % 3 == 1 ? -0.0 : -HUGE_VAL;
        return static_cast<double>(near_zero) / 4;
      case DataType::kText:
      case DataType::kBytes:
        break;
    }
    std::string text(formats_[part] == "w:5" ? 5
                     : random_() % 4 == 0    ? 14 + small % 3
                                             : small % 4,
                     'a');
    if (!text.empty()) text.back() = static_cast<char>(edge ? 0 : 'a' + small);
    strings_.push_back(text);
    return std::string_view(strings_.back());
  }

  const std::vector<DataType> parts_;
  const bool nulls_;
  std::mt19937_64 random_;
  std::vector<std::string> formats_;
  std::deque<std::string> strings_;
};

// A key's physical form as a string with the same order.
std::string Physical(const KeyCodec& codec, const std::vector<DataValue>& key) {
  EncodedKeys column(codec.kind());
  RequireOk(codec.Append(key, &column));
  if (codec.kind() == PhysicalType::kBytes) return std::string(column.bytes(0));
  const uint64_t number = codec.kind() == PhysicalType::kU32 ? column.u32(0) : column.u64(0);
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

using Oracle = std::map<std::string, std::vector<RowId>>;

void CheckPoints(const cairn_index* index, const KeyCodec& codec, const Oracle& oracle,
                 const RandomKeys::Keys& asked) {
  const size_t size = asked.rows.size();
  std::vector<uint32_t> first(size);
  const std::unique_ptr<bool[]> found(new bool[size]);
  std::vector<uint64_t> counts(size);
  const MatchesHandle matches = NewMatches();
  const ArrowSchema* const schema = &asked.arrow->schema;
  const ArrowArray* const array = &asked.arrow->array;
  RequireNone(cairn_find_first(index, schema, array, nullptr, first.data(), size));
  RequireNone(cairn_contains(index, schema, array, nullptr, found.get(), size));
  RequireNone(cairn_find(index, schema, array, nullptr, matches.get()));
  cairn_ranges equal = cairn_ranges_init();
  equal.kind = CAIRN_EQUAL;
  equal.lower_schema = schema;
  equal.lower = array;
  RequireNone(cairn_count(index, &equal, nullptr, counts.data(), size));
  BOOST_REQUIRE(cairn_matches_size(matches.get()) == size);
  const uint64_t* const offsets = cairn_matches_offsets(matches.get());
  const uint32_t* const rows = cairn_matches_row_ids(matches.get());
  for (size_t i = 0; i < size; ++i) {
    const auto entry = oracle.find(Physical(codec, asked.rows[i]));
    const std::vector<RowId> expected =
        entry == oracle.end() ? std::vector<RowId>() : entry->second;
    BOOST_TEST_CONTEXT("key " << i) {
      BOOST_TEST(found[i] == !expected.empty());
      BOOST_TEST(first[i] == (expected.empty() ? CAIRN_NO_ROW : expected[0]));
      BOOST_TEST(counts[i] == expected.size());
      BOOST_TEST(std::vector<RowId>(rows + offsets[i], rows + offsets[i + 1]) == expected,
                 boost::test_tools::per_element());
    }
  }
}

// Ranges between random keys, with bounds of each kind, ascending and descending.
void CheckRanges(const cairn_index* index, const KeyCodec& codec, const Oracle& oracle,
                 const RandomKeys::Keys& lower, const RandomKeys::Keys& upper,
                 std::mt19937_64& random) {
  const size_t size = lower.rows.size();
  std::vector<uint8_t> lower_bounds(size), upper_bounds(size);
  for (size_t i = 0; i < size; ++i) {
    lower_bounds[i] = static_cast<uint8_t>(random() % 4);
    upper_bounds[i] = static_cast<uint8_t>(random() % 4);
  }
  cairn_ranges ranges = cairn_ranges_init();
  ranges.lower_schema = &lower.arrow->schema;
  ranges.lower = &lower.arrow->array;
  ranges.upper_schema = &upper.arrow->schema;
  ranges.upper = &upper.arrow->array;
  ranges.lower_bounds = lower_bounds.data();
  ranges.upper_bounds = upper_bounds.data();
  cairn_query_options options = cairn_query_options_init();
  options.order = random() % 2 == 0 ? CAIRN_ASCENDING : CAIRN_DESCENDING;
  options.limit = random() % 2 == 0 ? 0 : 3;
  const MatchesHandle matches = NewMatches();
  std::vector<uint64_t> counts(size);
  RequireNone(cairn_scan(index, &ranges, &options, matches.get()));
  RequireNone(cairn_count(index, &ranges, nullptr, counts.data(), size));
  const uint64_t* const offsets = cairn_matches_offsets(matches.get());
  const uint32_t* const rows = cairn_matches_row_ids(matches.get());
  for (size_t i = 0; i < size; ++i) {
    const std::string low = Physical(codec, lower.rows[i]), high = Physical(codec, upper.rows[i]);
    std::vector<RowId> expected;
    for (const auto& [key, of_key] : oracle) {
      if (lower_bounds[i] <= CAIRN_BOUND_INCLUSIVE && key < low) continue;
      if (lower_bounds[i] == CAIRN_BOUND_EXCLUSIVE && key <= low) continue;
      if (upper_bounds[i] == CAIRN_BOUND_INCLUSIVE && key > high) continue;
      if (upper_bounds[i] % CAIRN_BOUND_EXCLUSIVE == 0 && key >= high) continue;
      expected.insert(expected.end(), of_key.begin(), of_key.end());
    }
    BOOST_TEST(counts[i] == expected.size());
    if (options.order == CAIRN_DESCENDING) std::reverse(expected.begin(), expected.end());
    if (options.limit != 0 && expected.size() > options.limit) expected.resize(options.limit);
    BOOST_TEST(std::vector<RowId>(rows + offsets[i], rows + offsets[i + 1]) == expected,
               boost::test_tools::per_element());
  }
}

// A scan of everything returns each entry's key as logical values, which must find its row again.
void CheckKeys(const cairn_index* index, const Oracle& oracle) {
  const cairn_ranges everything = cairn_ranges_init();
  cairn_query_options options = cairn_query_options_init();
  options.with_keys = 1;
  const MatchesHandle matches = NewMatches();
  RequireNone(cairn_scan(index, &everything, &options, matches.get()));
  ArrowResult result;
  RequireNone(cairn_matches_export(matches.get(), &result.schema, &result.array));
  BOOST_TEST(cairn_matches_size(matches.get()) == 0u);
  BOOST_REQUIRE_EQUAL(result.schema.format, "+L");
  const ArrowArray& item = *result.array.children[0];
  BOOST_REQUIRE_EQUAL(item.n_children, 2);
  size_t entries = 0;
  for (const auto& [key, rows] : oracle) entries += rows.size();
  BOOST_REQUIRE_EQUAL(item.length, static_cast<int64_t>(entries));
  const uint32_t* const row_ids = ArrowResult::Numbers<uint32_t>(*item.children[0]);
  const MatchesHandle found = NewMatches();
  RequireNone(cairn_find(index, result.schema.children[0]->children[1], item.children[1], nullptr,
                         found.get()));
  for (size_t i = 0; i < entries; ++i) {
    const uint32_t* const rows = cairn_matches_row_ids(found.get());
    const uint64_t* const offsets = cairn_matches_offsets(found.get());
    BOOST_TEST(std::count(rows + offsets[i], rows + offsets[i + 1], row_ids[i]) == 1);
  }
}

void CheckRandom(std::vector<DataType> parts, NullPolicy nulls, uint64_t salt) {
  RandomKeys random_keys(parts, nulls != NullPolicy::kSkip, salt);
  std::mt19937_64 random = TestRandom(salt + 1000);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{70}}) {
    const KeyCodec codec = RequireOk(KeyCodec::Create(parts, nulls));
    const RandomKeys::Keys keys = random_keys.Make(size);
    Oracle oracle;
    for (size_t i = 0; i < size; ++i) {
      oracle[Physical(codec, keys.rows[i])].push_back(static_cast<RowId>(i));
    }
    cairn_columns_options options = cairn_columns_options_init();
    options.nulls = static_cast<int32_t>(nulls);
    const IndexHandle index = IndexOver(*keys.arrow, &options);
    BOOST_TEST(cairn_kind(index.get()) == static_cast<int32_t>(codec.kind()));
    CheckPoints(index.get(), codec, oracle, random_keys.Make(40));
    CheckPoints(index.get(), codec, oracle, random_keys.Make(0));
    CheckRanges(index.get(), codec, oracle, random_keys.Make(30), random_keys.Make(30), random);
    CheckKeys(index.get(), oracle);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(keys_of_one_part_of_each_type) {
  uint64_t salt = 0;
  for (const DataType type : kTypes) {
    for (const NullPolicy nulls : {NullPolicy::kSkip, NullPolicy::kFirst, NullPolicy::kLast}) {
      for (int round = 0; round < (type == DataType::kText ? 8 : 2); ++round) {
        BOOST_TEST_CONTEXT(DataTypeName(type) << ", salt " << salt) {
          CheckRandom({type}, nulls, ++salt);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_of_several_parts) {
  std::mt19937_64 random = TestRandom();
  for (uint64_t salt = 100; salt < 130; ++salt) {
    std::vector<DataType> parts;
    for (size_t p = 2 + random() % 2; p > 0; --p) parts.push_back(kTypes[random() % 11]);
    BOOST_TEST_CONTEXT("salt " << salt) {
      CheckRandom(parts, static_cast<NullPolicy>(random() % 3), salt);
    }
  }
}

BOOST_AUTO_TEST_CASE(leading_parts_and_prefixes) {
  const std::vector<DataValue> countries = {"PT", "NO", "PT", "PTX", "PT"};
  const std::vector<DataValue> cities = {"Lisbon", "Oslo", "Lagos", "Li", "Porto"};
  std::vector<std::unique_ptr<TestArrow>> children;
  children.push_back(std::make_unique<TestArrow>("u", countries));
  children.push_back(std::make_unique<TestArrow>("vu", cities));
  const TestArrow places(std::move(children), 5, 0);
  const IndexHandle index = IndexOver(places);
  const auto count = [&](int32_t kind, const TestArrow& keys) {
    std::vector<uint64_t> counts(static_cast<size_t>(keys.array.length));
    cairn_ranges ranges = cairn_ranges_init();
    ranges.kind = kind;
    ranges.lower_schema = &keys.schema;
    ranges.lower = &keys.array;
    RequireNone(cairn_count(index.get(), &ranges, nullptr, counts.data(), counts.size()));
    return counts;
  };
  const TestArrow country("U", {"PT", "NO", "P"});
  BOOST_TEST(count(CAIRN_EQUAL, country) == (std::vector<uint64_t>{3, 1, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(count(CAIRN_PREFIX, country) == (std::vector<uint64_t>{4, 1, 4}),
             boost::test_tools::per_element());
  children.clear();
  children.push_back(std::make_unique<TestArrow>("u", std::vector<DataValue>{"PT", "PT", "NO"}));
  children.push_back(std::make_unique<TestArrow>("u", std::vector<DataValue>{"L", "Lisbon", ""}));
  const TestArrow both(std::move(children), 3, 0);
  BOOST_TEST(count(CAIRN_PREFIX, both) == (std::vector<uint64_t>{2, 1, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(count(CAIRN_EQUAL, both) == (std::vector<uint64_t>{0, 1, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ranges_that_are_open_at_an_end) {
  const TestArrow keys("I", {uint64_t{3}, uint64_t{1}, uint64_t{4}, uint64_t{1}, uint64_t{5}});
  const IndexHandle index = IndexOver(keys);
  const TestArrow ends("I", {uint64_t{1}, uint64_t{4}});
  uint64_t counts[2] = {};
  cairn_ranges ranges = cairn_ranges_init();
  ranges.lower_schema = &ends.schema;
  ranges.lower = &ends.array;
  RequireNone(cairn_count(index.get(), &ranges, nullptr, counts, 2));
  BOOST_TEST(counts[0] == 5u);
  BOOST_TEST(counts[1] == 2u);
  ranges.lower_bound = CAIRN_BOUND_EXCLUSIVE;
  RequireNone(cairn_count(index.get(), &ranges, nullptr, counts, 2));
  BOOST_TEST(counts[0] == 3u);
  ranges = cairn_ranges_init();
  ranges.upper_schema = &ends.schema;
  ranges.upper = &ends.array;
  ranges.upper_bound = CAIRN_BOUND_INCLUSIVE;
  RequireNone(cairn_count(index.get(), &ranges, nullptr, counts, 2));
  BOOST_TEST(counts[0] == 2u);
  BOOST_TEST(counts[1] == 4u);
  ranges = cairn_ranges_init();
  RequireNone(cairn_count(index.get(), &ranges, nullptr, counts, 1));
  BOOST_TEST(counts[0] == 5u);
}

BOOST_AUTO_TEST_CASE(nulls_are_skipped_and_rows_named) {
  const TestArrow keys("i", {int64_t{-3}, {}, int64_t{7}, {}, int64_t{-3}});
  const uint32_t rows[] = {50, 40, 30, 20, 10};
  cairn_columns_options options = cairn_columns_options_init();
  options.row_ids = rows;
  options.structure = "cpu:sorted_array";
  const IndexHandle named = IndexOver(keys, &options);
  const IndexHandle counted = IndexOver(keys);
  const TestArrow asked("i", {int64_t{-3}, int64_t{7}, int64_t{0}});
  uint32_t found[3];
  RequireNone(cairn_find_first(named.get(), &asked.schema, &asked.array, nullptr, found, 3));
  BOOST_TEST((found[0] == 10u && found[1] == 30u && found[2] == CAIRN_NO_ROW));
  RequireNone(cairn_find_first(counted.get(), &asked.schema, &asked.array, nullptr, found, 3));
  BOOST_TEST((found[0] == 0u && found[1] == 2u && found[2] == CAIRN_NO_ROW));
}

BOOST_AUTO_TEST_CASE(numbers_that_are_not_aligned) {
  TestArrow keys("L", {uint64_t{3}, uint64_t{1} << 60, uint64_t{9}});
  std::vector<char> moved(3 * sizeof(uint64_t) + 1);
  std::memcpy(moved.data() + 1, keys.array.buffers[1], 3 * sizeof(uint64_t));
  keys.array.buffers[1] = moved.data() + 1;
  const IndexHandle index = IndexOver(keys);
  uint32_t found[3];
  RequireNone(cairn_find_first(index.get(), &keys.schema, &keys.array, nullptr, found, 3));
  BOOST_TEST((found[0] == 0u && found[1] == 1u && found[2] == 2u));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
