#include "engine/extract/json_row.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "engine/extract/row_extractor.h"
#include "test/engine/extract/extracted_keys.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(json_row_test)
namespace {

BOOST_AUTO_TEST_CASE(reads_json_members_elements_and_the_whole_document) {
  const char* json = R"( {"a": {"b": [10, {"c": "deep"}], "": 1}, "x/y": 2, "m~n": 3,
                          "s": "\u00fc\n\"", "a": 9} )";
  BOOST_TEST(Keys("value.json('/a/b/0'):u8", json) == "10");
  BOOST_TEST(Keys("value.json('/a/b/1/c'):text", json) == "deep");
  BOOST_TEST(Keys("value.json('/a/'):u8", json) == "1");
  BOOST_TEST(Keys("value.json('/x~1y'):u8", json) == "2");
  BOOST_TEST(Keys("value.json('/m~0n'):u8", json) == "3");
  BOOST_TEST(Keys("value.json('/s'):text", json) == "\\xc3\\xbc\\x0a\"");
  BOOST_TEST(Keys("value.json('/s'):bytes,value.json('/m~0n'):i16", json) == "\\xc3\\xbc\\x0a\",3");
  BOOST_TEST(Keys("value.json(''):f64", " 1.5 ") == "1.5");
  BOOST_TEST(Keys("value.json(''):u32", "[3,1,2]") == "1 2 3");
  for (const char* pointer : {"/z", "/a/z", "/s/0", "/a/b/2", "/a/b/00", "/a/b/-", "/a/b/x",
                              "/a/b/18446744073709551616", "/m~0n/0"}) {
    const std::string spec = absl::StrFormat("value.json('%s'):u8", pointer);
    BOOST_TEST(Keys(spec, json) == "");
    BOOST_TEST(Keys(spec + ",nulls=first", json) == "\\N");
  }
}

BOOST_AUTO_TEST_CASE(json_numbers_become_keys_only_where_that_is_exact) {
  const auto keys = [](std::string_view type, std::string_view json) {
    return Keys(absl::StrFormat("value.json(''):%s", type), json);
  };
  BOOST_TEST(keys("u64", "18446744073709551615") == "18446744073709551615");
  BOOST_TEST(keys("i64", "-9223372036854775808") == "-9223372036854775808");
  BOOST_TEST(keys("u8", "2e2") == "200");
  BOOST_TEST(keys("u8", "7.0") == "7");
  BOOST_TEST(keys("f64", "9007199254740992") == "9007199254740992");
  BOOST_TEST(keys("f64", "0.1") == "0.1");
  BOOST_TEST(keys("f32", "0.1") == "0.1");
  BOOST_TEST(keys("f64", "-0.0") == "-0");
  BOOST_TEST(keys("u8", "true") == "1");
  BOOST_TEST(keys("i32", "false") == "0");
  BOOST_TEST(keys("text", "true") == "true");
  BOOST_TEST(keys("text", "false") == "false");
  BOOST_TEST(keys("text", "-12") == "-12");
  BOOST_TEST(keys("bytes", "18446744073709551615") == "18446744073709551615");
  const auto unreadable = [](std::string_view type, std::string_view json,
                             std::string_view mention) {
    Unreadable(absl::StrFormat("value.json(''):%s", type), json, mention);
  };
  unreadable("u8", "256", "from 0 to 255, found 256");
  unreadable("u8", "-1", "found -1");
  unreadable("u8", "1.5", "found 1.5");
  unreadable("i64", "9223372036854775808", "found 9223372036854775808");
  unreadable("f64", "9007199254740993", "found 9007199254740993");
  unreadable("f32", "16777217", "found 16777217");
  unreadable("f32", "1e39", "f32");
  unreadable("f64", "true", "found a JSON boolean");
  unreadable("text", "1.5", "a JSON number with a fraction");
  unreadable("u8", "\"7\"", "the JSON string '7'");
  unreadable("text", "{\"a\":1}", "found a JSON object");
  unreadable("text", "[[1]]", "a JSON array in an array");
  unreadable("u8", "[1,{}]", "found a JSON object");
  unreadable("u64", "18446744073709551616", "an integer beyond 64 bits");
  unreadable("f64", "-9223372036854775809", "an integer beyond 64 bits");
}

BOOST_AUTO_TEST_CASE(an_integer_beyond_64_bits_hinders_only_those_who_ask_for_it) {
  const char* json =
      R"({"s":"123456789012345678901234567890 \"-99999999999999999999","n":5,
          "big":-123456789012345678901234567890,"a":[1,123456789012345678901234567890]})";
  BOOST_TEST(Keys("value.json('/n'):u8", json) == "5");
  BOOST_TEST(Keys("value.json('/s'):text,value.json('/a/0'):u8", json) ==
             "123456789012345678901234567890\\x20\"-99999999999999999999,1");
  BOOST_TEST(Keys("value.json('/big/0'):u8", json) == "");
  Unreadable("value.json('/big'):i64", json, "an integer beyond 64 bits");
  Unreadable("value.json('/a'):u64", json, "an integer beyond 64 bits");
  for (const char* broken :
       {"[123456789012345678901234567890", "[-0123456789012345678901234567890]",
        "[123456789012345678901234567890x]", "{123456789012345678901234567890:1}",
        "[\"a\"123456789012345678901234567890]", "\"123456789012345678901234567890\\"}) {
    Unreadable("value.json('/0'):u64,nulls=last", broken, "expected JSON");
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_json_cannot_be_read) {
  for (const auto json : {""sv, " "sv, "{"sv, "{\"a\":}"sv, "{\"a\":1,}"sv, "[1 2]"sv, "nul"sv,
                          "01"sv, "1 2"sv, "{\"b\":1} x"sv, "\"\xff\""sv, "\"\n\""sv, "\"\\x\""sv,
                          "'a'"sv, "{\"a\":1}\0"sv, "NaN"sv, "\0"sv, "\"\\ud800\""sv}) {
    Unreadable("value.json('/a'):u8", json, "part 1 (value.json('/a'):u8): expected JSON");
    Unreadable("value.json('/a'):u8,nulls=last", json, "expected JSON");
  }
  Unreadable("value.json('/a'):u8", std::string(2000, '[') + std::string(2000, ']'),
             "expected JSON");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
