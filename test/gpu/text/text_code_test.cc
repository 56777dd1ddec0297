#include "gpu/text/text_code.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/types.h"
#include "index/layout/wide_key.h"
#include "test/ordered_index_oracle.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

// Numbers of byte strings. Needs no device; the kernels compute them with the same function.
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(text_code_test)
namespace {

using oracle::FinishStrings;

// How many of the numbers of a run's keys are less than one.
template <typename Key>
Position CountLess(const std::vector<Key>& numbers, const TextNumber<Key>& number) {
  if (number.past_all) return static_cast<Position>(numbers.size());
  return static_cast<Position>(std::lower_bound(numbers.begin(), numbers.end(), number.number) -
                               numbers.begin());
}

template <typename Key>
void CheckNumbers(const TextCode& code, const SortedRun& run, const OracleData<std::string>& data) {
  const std::vector<std::string>& keys = data.keys;
  std::vector<Key> numbers(keys.size());
  BOOST_REQUIRE(code.Number(run.bytes(), 0, absl::MakeSpan(numbers)));
  for (size_t i = 0; i < keys.size(); ++i) {
    const TextNumber<Key> number = code.Number<Key>(keys[i]);
    BOOST_REQUIRE(number.exact && !number.past_all && number.number == numbers[i]);
    if (i > 0) BOOST_REQUIRE((keys[i - 1] < keys[i]) == (numbers[i - 1] < numbers[i]));
  }
  for (const std::string& query : data.queries) {
    const auto lower = std::lower_bound(keys.begin(), keys.end(), query);
    const auto upper = std::upper_bound(keys.begin(), keys.end(), query);
    auto prefix_end = lower;
    while (prefix_end != keys.end() && prefix_end->starts_with(query)) ++prefix_end;
    const auto number = code.Number<Key>(query);
    const auto count = [&](TextEdge edge) {
      return CountLess(numbers, code.Number<Key>(query, edge));
    };
    const auto position = [&](auto it) { return static_cast<Position>(it - keys.begin()); };
    BOOST_REQUIRE(CountLess(numbers, number) == position(lower));
    BOOST_REQUIRE(count(TextEdge::kUpper) == position(upper));
    BOOST_REQUIRE(count(TextEdge::kPrefixEnd) == position(prefix_end));
    // A string with an exact number is the key with that number, if there is one.
    const bool there =
        number.exact && std::binary_search(numbers.begin(), numbers.end(), number.number);
    BOOST_REQUIRE(there == (lower != upper));
  }
}

// Strings that have numbers, by the quick way to them.
template <typename Key>
void CheckQuick(const TextCode& code, const std::vector<std::string>& strings) {
  const auto count = static_cast<uint32_t>(code.positions().size());
  if (code.shares().empty()) return;
  std::vector<uint64_t> products((count + 3) / 4);
  std::memcpy(products.data(), code.shares().data(), products.size() * sizeof(uint64_t));
  for (const std::string& string : strings) {
    if (string.size() < code.shortest() || string.size() > count) {
      BOOST_REQUIRE(!code.Number<Key>(string).exact);
      continue;
    }
    Key number = 0;
    const bool found = QuickNumberOfText<Key>(
        products.data(), code.shares().data() + 2 * products.size(), count,
        static_cast<uint32_t>(string.size()),
        [&](uint32_t i) {
          uint32_t word = UINT32_MAX;
          std::memcpy(&word, string.data() + 4 * i, std::min(sizeof(word), string.size() - 4 * i));
          return word;
        },
        &number);
    const TextNumber<Key> expected = code.Number<Key>(string);
    BOOST_REQUIRE(found == expected.exact);
    if (found) BOOST_REQUIRE(number == expected.number);
  }
}

// For keys that are numbers, the shorter function.
template <typename Key>
void CheckPlain(const TextCode& code, const std::vector<std::string>& strings) {
  for (const std::string& string : strings) {
    for (const TextEdge edge : {TextEdge::kLower, TextEdge::kUpper, TextEdge::kPrefixEnd}) {
      const TextNumber<Key> number = code.Number<Key>(string, edge);
      const TextNumber<Key> plain =
          NumberOfBytes<Key>(static_cast<uint32_t>(code.positions().size()),
                             static_cast<uint32_t>(string.size()), edge, [&](uint32_t i) {
                               uint32_t word = UINT32_MAX;  // any bytes past the end
                               std::memcpy(&word, string.data() + 4 * i,
                                           std::min(sizeof(word), string.size() - 4 * i));
                               return word;
                             });
      BOOST_REQUIRE(number.number == plain.number);
      BOOST_REQUIRE(number.past_all == plain.past_all);
      if (edge == TextEdge::kLower) BOOST_REQUIRE(number.exact == plain.exact);
    }
  }
}

// Returns whether there is a code.
bool Check(const OracleData<std::string>& data) {
  const SortedRun run = OracleRun(data);
  const std::optional<TextCode> code = TextCode::Of(run.bytes(), 2);
  if (!code.has_value()) return false;
  BOOST_TEST_CONTEXT(data.name) {
    if (code->is_narrow()) CheckNumbers<uint64_t>(*code, run, data);
    CheckNumbers<WideKey>(*code, run, data);
    if (code->is_narrow()) CheckQuick<uint64_t>(*code, data.queries);
    CheckQuick<WideKey>(*code, data.queries);
    if (code->is_plain() && code->is_narrow()) CheckPlain<uint64_t>(*code, data.queries);
    if (code->is_plain()) CheckPlain<WideKey>(*code, data.queries);
  }
  return true;
}

std::string Binary(uint64_t high, uint64_t low) {
  std::string key(16, '\0');
  for (size_t i = 0; i < 8; ++i) {
    key[i] = static_cast<char>(high >> 8 * (7 - i));
    key[8 + i] = static_cast<char>(low >> 8 * (7 - i));
  }
  return key;
}

std::optional<TextCode> CodeOf(std::vector<std::string> keys) {
  return TextCode::Of(OracleRun(FinishStrings("", std::move(keys))).bytes(), 1);
}

BOOST_AUTO_TEST_CASE(numbers_have_the_order_of_strings) {
  size_t codes = 0;
  for (const auto& data : OracleCatalogue<std::string>(FewerSanitized(20000, 10, 20))) {
    codes += Check(data) ? 1 : 0;
  }
  BOOST_TEST(codes > 5u);
}

// All strings of up to three symbols, and subsets of them, against all of up to four.
BOOST_AUTO_TEST_CASE(all_short_strings_are_placed) {
  const std::string symbols = std::string("\0\x01", 2) + "a\xfe\xff";
  std::vector<std::string> all = {""};
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == 4) break;
    for (const char symbol : symbols) all.push_back(all[i] + symbol);
  }
  auto random = TestRandom(71);
  for (int subset = 0; subset < static_cast<int>(FewerSanitized(300, 10, 30)); ++subset) {
    std::vector<std::string> keys;
    const size_t most = 1 + random() % 40, longest = random() % 5, shortest = random() % 5;
    for (size_t i = 0; i < most; ++i) {
      const std::string& key = all[random() % all.size()];
      if (key.size() <= longest && key.size() >= std::min(shortest, longest)) keys.push_back(key);
    }
    auto data = FinishStrings("short", keys);
    data.queries = all;
    BOOST_REQUIRE(Check(data));
  }
}

BOOST_AUTO_TEST_CASE(lengths_are_told_apart) {
  auto data = FinishStrings("a and zeros", {"a", std::string("a\0", 2), std::string("a\0\0", 3)});
  data.queries.emplace_back("a\0\0\0", 4);
  BOOST_TEST(Check(data));
  // Here no key ends with a zero, and no query may be mistaken for a shorter key.
  data = FinishStrings("no zeros", {"a", "ab", "b"});
  data.queries.emplace_back("a\0", 2);
  data.queries.emplace_back("ab\0\0", 4);
  BOOST_TEST(Check(data));
}

BOOST_AUTO_TEST_CASE(whole_numbers_of_64_and_128_bits_suffice) {
  auto random = TestRandom(72);
  std::vector<std::string> wide = {Binary(0, 0), Binary(UINT64_MAX, UINT64_MAX)}, narrow, all;
  for (size_t i = 0; i < FewerSanitized(2000, 10, 20); ++i) {
    wide.push_back(Binary(random(), random()));
    narrow.push_back(Binary(0, random()).substr(8));
  }
  // Every byte at every position.
  for (int byte = 0; byte < 256; ++byte) {
    wide.emplace_back(16, static_cast<char>(byte));
    narrow.emplace_back(8, static_cast<char>(byte));
  }
  auto data = FinishStrings("16 bytes", wide);
  data.queries.emplace_back(17, '\xff');
  data.queries.emplace_back(15, '\xff');
  BOOST_TEST(Check(data));
  BOOST_TEST(!CodeOf(wide)->is_narrow());
  BOOST_TEST(CodeOf(wide)->is_plain());
  data = FinishStrings("8 bytes", narrow);
  data.queries.emplace_back(9, '\xff');
  data.queries.emplace_back(7, '\xff');
  BOOST_TEST(Check(data));
  BOOST_TEST(CodeOf(narrow)->is_narrow());
  BOOST_TEST(CodeOf(narrow)->is_plain());
  std::vector<std::string> of_eleven = wide;
  for (std::string& key : of_eleven) key.resize(11);
  BOOST_TEST(Check(FinishStrings("11 bytes", of_eleven)));
  BOOST_TEST(CodeOf(of_eleven)->is_plain());
  // A symbol more is one too many.
  narrow.emplace_back(7, 'x');
  BOOST_TEST(!CodeOf(narrow)->is_narrow());
  wide.emplace_back(15, 'x');
  BOOST_TEST(!CodeOf(wide).has_value());
}

BOOST_AUTO_TEST_CASE(few_symbols_make_long_keys_fit) {
  auto random = TestRandom(73);
  std::vector<std::string> uuids, digits, times;
  for (size_t i = 0; i < FewerSanitized(3000, 10, 20); ++i) {
    std::string uuid(36, '-'), number(16, '0');
    for (size_t p = 0; p < uuid.size(); ++p) {
      if (p != 8 && p != 13 && p != 18 && p != 23) uuid[p] = "0123456789abcdef"[random() % 16];
    }
    for (char& digit : number) digit = static_cast<char>('0' + random() % 10);
    uuids.push_back(uuid);
    digits.push_back(number);
    times.push_back("2026-11-2" + number.substr(0, 1) + "T1" + number.substr(1, 1) + ":00:00Z");
  }
  BOOST_TEST(Check(FinishStrings("UUIDs", uuids)));
  BOOST_TEST(!CodeOf(uuids)->is_narrow());
  BOOST_TEST(Check(FinishStrings("digits", digits)));
  BOOST_TEST(CodeOf(digits)->is_narrow());
  BOOST_TEST(Check(FinishStrings("times", times)));
  BOOST_TEST(CodeOf(times)->is_narrow());
}

BOOST_AUTO_TEST_CASE(keys_of_up_to_64_bytes_are_taken) {
  BOOST_TEST(Check(FinishStrings("one", {"the one key there is"})));
  BOOST_TEST(Check(FinishStrings("the empty one", {""})));
  BOOST_TEST(Check(FinishStrings("none", {})));
  BOOST_TEST(Check(FinishStrings("64 bytes", {std::string(64, 'x'), std::string(63, 'x') + 'y'})));
  BOOST_TEST(!CodeOf({std::string(65, 'x')}).has_value());
}

BOOST_AUTO_TEST_CASE(surveys_are_those_of_the_numbers) {
  auto random = TestRandom(74);
  std::vector<std::string> keys;
  for (size_t i = 0; i < FewerSanitized(700000, 100, 200); ++i) {
    keys.push_back(Binary(random() % 3, random() % (uint64_t{1} << 60) << (random() % 3)));
  }
  const SortedRun run = OracleRun(FinishStrings("composites", std::move(keys)));
  const auto code = TextCode::Of(run.bytes(), 2);
  BOOST_REQUIRE(code.has_value());
  std::vector<WideKey> numbers(run.size());
  BOOST_REQUIRE(code->Number(run.bytes(), 0, absl::MakeSpan(numbers)));
  KeySurvey<WideKey> expected = {};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && numbers[i] == numbers[i - 1]) continue;
    ++expected.distinct;
    for (int width = 0; width < KeySurvey<WideKey>::kWidths; ++width) {
      const int bits = 16 * (width + 1);
      const WideKey block = numbers[i] >> bits;
      const WideKey before = i == 0 ? ~WideKey{0} : numbers[i - 1] >> bits;
      expected.blocks[width] += block != before || i == 0 ? 1 : 0;
      expected.gaps[width] += i == 0 ? block != 0 : block > before + 1 ? 1 : 0;
    }
  }
  for (int threads : {1, 4}) {
    const auto survey = SurveyNumbers<WideKey>(*code, run.bytes(), threads);
    BOOST_TEST((survey.least == numbers.front() && survey.greatest == numbers.back()));
    BOOST_TEST(survey.distinct == expected.distinct);
    for (int width = 0; width < KeySurvey<WideKey>::kWidths; ++width) {
      BOOST_TEST(survey.blocks[width] == expected.blocks[width]);
      BOOST_TEST(survey.gaps[width] == expected.gaps[width]);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
