#include "engine/util/crc32c.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(crc32c_test)
namespace {

BOOST_AUTO_TEST_CASE(gives_the_values_of_rfc_3720) {
  BOOST_TEST(Crc32c("") == 0u);
  BOOST_TEST(Crc32c("123456789") == 0xE3069283u);
  BOOST_TEST(Crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  BOOST_TEST(Crc32c(std::string(32, '\xFF')) == 0x62A8AB43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  BOOST_TEST(Crc32c(ascending) == 0x46DD794Eu);
}

BOOST_AUTO_TEST_CASE(gives_the_same_bit_by_bit_and_in_parts) {
  auto random = TestRandom();
  for (size_t size = 0; size < 100; ++size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(random()));
    uint32_t expected = ~0u;
    for (char byte : bytes) {
      expected ^= static_cast<uint8_t>(byte);
      for (int bit = 0; bit < 8; ++bit) {
        expected = (expected >> 1) ^ ((expected & 1) != 0 ? 0x82F63B78u : 0);
      }
    }
    BOOST_TEST(Crc32c(bytes) == ~expected);
    const size_t cut = random() % (size + 1);
    const std::string_view view = bytes;
    BOOST_TEST(Crc32c(view.substr(cut), Crc32c(view.substr(0, cut))) == ~expected);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
