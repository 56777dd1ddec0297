#include "index/machine/byte_copy.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace cairn {
BOOST_AUTO_TEST_SUITE(byte_copy_test)

BOOST_AUTO_TEST_CASE(copies_every_byte_and_no_other) {
  constexpr char kUntouched = '\x7f';
  for (size_t size = 0; size <= 70; ++size) {
    std::vector<char> from(
        size);  // of exactly this size, so that AddressSanitizer detects other reads
    for (size_t i = 0; i < size; ++i) from[i] = static_cast<char>(i);
    std::string to(size + 16, kUntouched);
    BOOST_TEST((CopyBytes({from.data(), size}, to.data() + 8) == to.data() + 8 + size));
    BOOST_TEST(to.substr(8, size) == std::string(from.begin(), from.end()));
    BOOST_TEST(to.substr(0, 8) == std::string(8, kUntouched));
    BOOST_TEST(to.substr(8 + size) == std::string(8, kUntouched));
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
