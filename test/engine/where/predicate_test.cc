#include "cairn/where/predicate.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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
                          !Predicate("place", KeyQuery::Leading("PT"));
  BOOST_TEST(where.ToString() ==
             "city IN ('Lisbon', 'Oslo') AND age IN [18, 65) AND NOT (place = ('PT'))");
  BOOST_TEST((Predicate("a", 1) || Predicate("b", nullptr)).ToString() == "a = 1 OR b = NULL");
  // It owns its bytes.
  Predicate kept("none", 0);
  {
    std::string text(100, 'x');
    kept = Predicate("city", KeyQuery::Prefix(text));
    text.assign(100, 'y');
  }
  BOOST_TEST(absl::StrContains(kept.ToString(), "xxx"));
}

BOOST_AUTO_TEST_CASE(errors_say_where_and_what_was_expected) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, const char*>>{
           {"", "at offset 0: expected an index's name, NOT or '(', found the end"},
           {"age", "at offset 3: expected =, <>"},
           {"age >", "at offset 5: expected a number, 'text', NULL or (a, b), found the end"},
           {"age = 1 2", "at offset 8: expected AND, OR or the end, found '2'"},
           {"age = 1 AND", "at offset 11: expected an index's name"},
           {"(age = 1", "at offset 8: expected ')', AND or OR"},
           {"age = 'x", "at offset 6: the text that begins here has no end"},
           {"age = '\\n'", "at offset 7: a backslash begins"},
           {"age = '\\x1'", "at offset 7: a backslash begins"},
           {"\"age = 1", "at offset 0: the name that begins here has no end"},
           {"age IS 1", "at offset 7: expected NULL or NOT NULL"},
           {"age NOT = 1", "at offset 8: expected IN, BETWEEN, LIKE or STARTS WITH"},
           {"age BETWEEN 1", "at offset 13: expected AND"},
           {"city LIKE '%x'", "at offset 10: LIKE takes one wildcard"},
           {"city LIKE 'a_'", "at offset 10: LIKE takes one wildcard"},
           {"city LIKE 5", "at offset 10: expected 'text'"},
           {"age = 1.2.3", "at offset 6: expected a number"},
           {"age = 99999999999999999999", "at offset 6: expected a number"},
           {"age = -", "at offset 6: expected a number"},
           {"and = 1", "at offset 0: expected an index's name"},
           {std::string("a = '\0", 6), "no end"},
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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
