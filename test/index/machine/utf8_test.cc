#include "index/machine/utf8.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>

namespace cairn {
BOOST_AUTO_TEST_SUITE(utf8_test)
namespace {

std::string Encoded(uint32_t code) {
  const auto byte = [](uint32_t bits) { return static_cast<char>(bits); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 63))};
  if (code < 0x10000) {
    return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63))};
  }
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
          byte(0x80 | (code & 63))};
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_code_points) {
  for (uint32_t code = 0; code < 0x120000; ++code) {
    const bool valid = (code < 0xD800 || code > 0xDFFF) && code <= 0x10FFFF;
    const std::string text = Encoded(code);
    BOOST_TEST_REQUIRE(Utf8Length(text + "x") == (valid ? text.size() : 0), code);
    BOOST_TEST_REQUIRE(IsUtf8("12345678" + text) == valid, code);
    if (text.size() > 1) BOOST_TEST_REQUIRE(!IsUtf8(text.substr(0, text.size() - 1)), code);
  }
}

BOOST_AUTO_TEST_CASE(other_bytes) {
  BOOST_TEST(Utf8Length("") == 0u);
  BOOST_TEST(IsUtf8(""));
  for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                           "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\xff"}) {
    BOOST_TEST(Utf8Length(text) == 0u);
    BOOST_TEST(!IsUtf8(std::string("text ") + text));
    BOOST_TEST(!IsUtf8(text + std::string(" text that is longer than a word")));
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
