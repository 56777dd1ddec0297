#include "cairn/predicate.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(predicate_test)
namespace {

std::string Reread(std::string_view text) {
  const Predicate predicate = RequireOk(Predicate::Parse(text));
  const std::string written = predicate.ToString();
  BOOST_TEST(RequireOk(Predicate::Parse(written)).ToString() == written);
  return written;
}

BOOST_AUTO_TEST_CASE(text_is_read_and_written) {
  for (const auto& [text, written] : std::vector<std::pair<const char*, const char*>>{
           {"age=42", "age = 42"},
           {" age  >=  -5 ", "age >= -5"},
           {"age<1.5e3", "age < 1500.0"},
           {"x = -0.0 OR x = 1e300", "x = -0.0 OR x = 1e+300"},
           {"age <> 7", "NOT (age = 7)"},
           {"age != 7 and b<=2", "NOT (age = 7) AND b <= 2"},
           {"a = 1 OR b = 2 AND c = 3", "a = 1 OR (b = 2 AND c = 3)"},
           {"(a = 1 OR b = 2) AND c = 3", "(a = 1 OR b = 2) AND c = 3"},
           {"a = 1 AND b = 2 AND c = 3", "a = 1 AND b = 2 AND c = 3"},
           {"NOT NOT a = 1", "NOT (NOT (a = 1))"},
           {"city in ('Lisbon','O''slo')", "city IN ('Lisbon', 'O''slo')"},
           {"city NOT IN ()", "NOT (city IN ())"},
           {"city IN ['a', 'c')", "city IN ['a', 'c')"},
           {"city BETWEEN 'a' AND 'c' AND x = 1", "city BETWEEN 'a' AND 'c' AND x = 1"},
           {"city not between 'a' and 'c'", "NOT (city BETWEEN 'a' AND 'c')"},
           {"city LIKE 'Lis%'", "city STARTS WITH 'Lis'"},
           {"city LIKE 'Lisbon'", "city = 'Lisbon'"},
           {"city starts with 'Lis'", "city STARTS WITH 'Lis'"},
           {"city IS NULL", "city IS NULL"},
           {"city IS NOT NULL", "NOT (city IS NULL)"},
           {"city = NULL", "city = NULL"},
           {"place = ('PT', 'Lisbon')", "place = ('PT', 'Lisbon')"},
           {"place IN (('PT', 1), ('NO', 2))", "place IN (('PT', 1), ('NO', 2))"},
           {"x = '\\x00\\xff\\x5c'", "x = '\\x00\\xff\\x5c'"},
           {"\"a b\"\"c\" = 1", "\"a b\"\"c\" = 1"},
           {"\"and\" = 1", "\"and\" = 1"},
           {"by-city.2 = 18446744073709551615", "by-city.2 = 18446744073709551615"},
           {"x = -0", "x = -0.0"},
           {"x IN (nan, NaN, inf, -INF, Infinity, -infinity)",
            "x IN (nan, nan, inf, -inf, inf, -inf)"},
           {"x = -nan", "x = nan"},
           {"nan = 1 AND inf = 2", "nan = 1 AND inf = 2"},
           {"city LIKE NULL", "city = NULL"},
       }) {
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(Reread(text) == written);
    }
  }
}

BOOST_AUTO_TEST_CASE(operators_make_what_text_says) {
  const std::string lisbon = "Lisbon";
  const Predicate where = Predicate("city", {lisbon, "Oslo"}) &&
                          Predicate("age", KeyQuery::Range(18, 65)) &&
                          !Predicate("place", KeyQuery::Prefix("PT"));
  BOOST_TEST(where.ToString() ==
             "city IN ('Lisbon', 'Oslo') AND age IN [18, 65) AND NOT (place = ('PT'))");
  BOOST_TEST((Predicate("a", 1) || Predicate("b", nullptr)).ToString() == "a = 1 OR b = NULL");
  // The predicate owns its bytes.
  Predicate kept("none", 0);
  {
    std::string text(100, 'x');
    kept = Predicate("city", KeyQuery::BytePrefix(text));
    text.assign(100, 'y');
  }
  BOOST_TEST(absl::StrContains(kept.ToString(), "xxx"));
}

BOOST_AUTO_TEST_CASE(errors_say_where_and_what_was_expected) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, const char*>>{
           {"", "at offset 0: expected an index's name, NOT or '(', found the end"},
           {"age", "at offset 3: expected =, <>"},
           {"age >", "at offset 5: expected a number, 'text', NULL, ? or (a, b), found the end"},
           {"age = 1 2", "at offset 8: expected AND, OR or the end, found '2'"},
           {"age = 1 AND", "at offset 11: expected an index's name"},
           {"(age = 1", "at offset 8: expected ')', AND or OR"},
           {"age = 'x", "at offset 6: unterminated text"},
           {"age = '\\n'", "at offset 7: expected \\xHH after a backslash"},
           {"age = '\\x1'", "at offset 7: expected \\xHH after a backslash"},
           {"\"age = 1", "at offset 0: unterminated name"},
           {"age IS 1", "at offset 7: expected NULL or NOT NULL"},
           {"age NOT = 1", "at offset 8: expected IN, BETWEEN, LIKE or STARTS WITH"},
           {"age BETWEEN 1", "at offset 13: expected AND"},
           {"city LIKE '%x'", "at offset 10: LIKE supports one wildcard"},
           {"city LIKE 'a_'", "at offset 10: LIKE supports one wildcard"},
           {"city LIKE 5", "at offset 10: LIKE: expected 'text', found 5"},
           {"age = 1.2.3", "at offset 6: expected a number"},
           {"age = 99999999999999999999",
            "at offset 6: expected an integer from -9223372036854775808 to 18446744073709551615, "
            "or a float, which has a '.', found '99999999999999999999'"},
           {"age = -9223372036854775809", "at offset 6: expected an integer from -922"},
           {"x = 1e400", "at offset 4: expected a number that fits in a 64-bit float, found"},
           {"x = 1e-400", "at offset 4: expected a number that fits in a 64-bit float, found"},
           {"x = +inf", "at offset 4: expected a number, 'text'"},
           {"x = infinite", "at offset 4: expected a number, 'text'"},
           {"a = 1 AND b = ?", "at offset 14: expected a value of parameter 1, found 0 values"},
           {"? = 1", "at offset 0: expected an index's name"},
           {"a IN ?", "at offset 5: expected '('"},
           {"age = -", "at offset 6: expected a number"},
           {"and = 1", "at offset 0: expected an index's name"},
           {std::string("a = '\0", 6), "unterminated text"},
           {std::string(1000, '('), "nested deeper than 200"},
       }) {
    BOOST_TEST_CONTEXT(text) {
      const auto parsed = Predicate::Parse(text);
      BOOST_REQUIRE(!parsed.ok());
      BOOST_TEST(absl::IsInvalidArgument(parsed.status()));
      BOOST_TEST(absl::StrContains(std::string(parsed.status().message()), message),
                 parsed.status().message());
    }
  }
}

BOOST_AUTO_TEST_CASE(parameters_are_values_and_never_text) {
  const auto written = [](std::string_view text, absl::Span<const PartValue> parameters) {
    return RequireOk(Predicate::Parse(text, parameters)).ToString();
  };
  BOOST_TEST(written("city = ? AND age >= ?", {"Lisbon", 18}) == "city = 'Lisbon' AND age >= 18");
  const std::string hostile = "nowhere' OR u8 >= 0 OR text = 'x\\ ?";
  BOOST_TEST(written("text = ?", {hostile}) ==
             "text = 'nowhere'' OR u8 >= 0 OR text = ''x\\x5c ?'");
  BOOST_TEST(written("a IN (?, 2, ?) OR a BETWEEN ? AND ? OR a IN [?, ?)", {1, 3, 4, 5, 6, 7}) ==
             "a IN (1, 2, 3) OR a BETWEEN 4 AND 5 OR a IN [6, 7)");
  BOOST_TEST(written("p = (?, ?) OR p IN ((1, ?), (?, 4)) OR p < (?)", {"x", nullptr, 2, 3, 5}) ==
             "p = ('x', NULL) OR p IN ((1, 2), (3, 4)) OR p < 5");
  BOOST_TEST(written("a LIKE ? OR a NOT LIKE ? OR a STARTS WITH ? OR a LIKE ?",
                     {"Lis%", "Os", "100%", nullptr}) ==
             "a STARTS WITH 'Lis' OR NOT (a = 'Os') OR a STARTS WITH '100%' OR a = NULL");
  BOOST_TEST(written("a <> ? AND NOT a = ?", {-1, nullptr}) == "NOT (a = -1) AND NOT (a = NULL)");
  const double infinity = std::numeric_limits<double>::infinity();
  BOOST_TEST(written("a IN (?, ?, ?, ?)", {std::numeric_limits<double>::quiet_NaN(), infinity,
                                           -infinity, -0.0}) == "a IN (nan, inf, -inf, -0.0)");
  BOOST_TEST(written("a = '?' AND \"?\" = ?", {std::string_view("\0?", 2)}) ==
             "a = '?' AND \"?\" = '\\x00?'");
  // The predicate owns its bytes.
  std::string text(100, 'x');
  const Predicate kept = RequireOk(Predicate::Parse("a = ?", {text}));
  text.assign(100, 'y');
  BOOST_TEST(absl::StrContains(kept.ToString(), "xxx"));
}

BOOST_AUTO_TEST_CASE(parameters_are_as_many_as_the_text_has) {
  for (const auto& [text, message] : std::vector<std::pair<const char*, const char*>>{
           {"a = 1", "predicate: expected 0 parameters, one for each ?, found 2 values"},
           {"a = ?", "predicate: expected 1 parameter, one for each ?, found 2 values"},
           {"a IN (?, ?, ?)",
            "predicate, at offset 12: expected a value of parameter 3, found 2 values"},
           {"a LIKE ? AND b = ?", "predicate, at offset 7: LIKE: expected 'text', found 1"},
       }) {
    const auto parsed = Predicate::Parse(text, {1, "x"});
    BOOST_REQUIRE(!parsed.ok());
    BOOST_TEST(absl::IsInvalidArgument(parsed.status()));
    BOOST_TEST(parsed.status().message() == message);
  }
  const auto like = Predicate::Parse("a LIKE ?", {"%x"});
  BOOST_TEST(absl::StrContains(std::string(like.status().message()), "LIKE supports one wildcard"));
}

BOOST_AUTO_TEST_CASE(parameters_know_what_they_are_compared_with) {
  const auto parameters =
      RequireOk(Predicate::ParametersOf("a = ? AND (\"b c\" IN ((1, ?), (?, ?)) OR NOT d LIKE ?)"));
  std::string all;
  for (const Predicate::Parameter& parameter : parameters) {
    absl::StrAppend(&all, parameter.index, ":", parameter.part, " ");
  }
  BOOST_TEST(all == "a:0 b c:1 b c:0 b c:1 d:0 ");
  BOOST_TEST(RequireOk(Predicate::ParametersOf("a = '?'")).empty());
  BOOST_TEST(!Predicate::ParametersOf("a = ").ok());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
