#include "index/machine/huge_pages.h"

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "index/machine/aligned_buffer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(huge_pages_test)
namespace {

constexpr size_t kHuge = size_t{2} << 20;

BOOST_AUTO_TEST_CASE(are_what_the_kernel_grants_of_a_large_buffer) {
  AlignedBuffer<char> buffer(8 * kHuge);
  for (size_t i = 0; i < buffer.size(); i += 4096) buffer[i] = 1;
  const uint64_t huge = buffer.huge_page_bytes();
  BOOST_TEST(huge <= buffer.size());
  BOOST_TEST(huge % kHuge == 0u);
  std::string choice;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), choice);
  if (choice.find("[never]") != std::string::npos) BOOST_TEST(huge == 0u);
}

BOOST_AUTO_TEST_CASE(are_none_of_a_small_one) {
  AlignedBuffer<char> buffer(100);
  BOOST_TEST(buffer.huge_page_bytes() <= 100u);
  BOOST_TEST(HugePageBytes(nullptr, 0) == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
